import { chownSync, readFileSync, writeFileSync } from 'node:fs'
import { connect } from 'node:net'
import { basename, join } from 'node:path'
import { Duplex } from 'node:stream'
import { Client, Pool, type PoolConfig } from 'pg'
import postgresJs from 'postgres'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { newFolder } from '../../../../lab/servers/folder.ts'
import { type PostgresServer, startPostgres, unprivileged } from '../../../../lab/servers/postgres.ts'
import { until } from '../../../../lab/servers/until.ts'
import { postgresFence } from '../../../fencing/postgres/index.ts'
import { openStore } from '../../../store.ts'
import { migrate, type PostgresClient, postgres } from '../index.ts'
import { acquire, claimOf, hold, look, signal } from './support.ts'

const given = join(import.meta.dirname, '../../../../test/certificates')
const text = (file: string): string => readFileSync(join(given, file), 'utf8')
const tls = { ca: text('ca.pem'), cert: text('client.pem'), key: text('client.key') }

let server: PostgresServer

beforeAll(async () => {
  const folder = newFolder('tls')
  // It takes no key that others may read.
  const files = ['server.key', 'server.pem', 'ca.pem'].map(file => join(folder, file))
  for (const path of files) writeFileSync(path, text(basename(path)), { mode: 0o600 })
  const user = unprivileged()
  if (user) for (const path of [folder, ...files]) chownSync(path, user.uid, user.gid)
  const [ssl_key_file = '', ssl_cert_file = '', ssl_ca_file = ''] = files
  server = await startPostgres({ config: { ssl: 'on', ssl_key_file, ssl_cert_file, ssl_ca_file } })
  await server.query("create role strict superuser login password 'se cret'")
  await server.query('create role relaxed superuser login')
  await server.query('create database leases')
  // The user of the table has to have all of these.
  const [row] = await server.query<{ hba_file: string }>('show hba_file')
  const path = String(row?.hba_file)
  const rules = ['hostssl leases strict all scram-sha-256 clientcert=verify-ca', 'host all strict all reject']
  writeFileSync(path, [...rules, readFileSync(path, 'utf8')].join('\n'))
  await server.query('select pg_reload_conf()')
  await migrate(new Pool({ ...place(), user: 'postgres', database: 'leases' }))
  await migrate(new Pool({ connectionString: server.url() }))
})
afterAll(() => server.stop())

interface Owned {
  readonly client: PostgresClient
  end?(): unknown
}

const place = (): { host: string; port: number } => ({ host: server.host, port: server.port })
const required = () => ({
  ...place(),
  user: 'strict',
  password: 'se cret',
  database: 'leases',
  ssl: { ...tls, host: server.host },
})
const url = (): string => `postgres://strict:se%20cret@${server.host}:${server.port}/leases`
const files = (): string =>
  `sslmode=verify-full&sslrootcert=${given}/ca.pem&sslcert=${given}/client.pem&sslkey=${given}/client.key`
const lasting = (client: ReturnType<typeof postgresJs>): Owned => ({ client, end: () => client.end({ timeout: 0 }) })

const clients: Record<string, () => Owned> = {
  'a Pool of pg': () => ({ client: new Pool({ ...required(), application_name: 'reports' }) }),
  'a Pool of pg by URL': () => ({
    client: new Pool({ connectionString: `${url()}?application_name=reports`, ssl: required().ssl }),
  }),
  'a Pool of pg whose URL names files': () => ({
    client: new Pool({ connectionString: `${url()}?application_name=reports&${files()}` }),
  }),
  'a Pool of pg with a password from a function': () => ({
    client: new Pool({ ...required(), password: async () => 'se cret', application_name: 'reports' }),
  }),
  'a Pool of pg with a stream of its own': () => ({
    client: new Pool({ ...required(), port: 1, stream: elsewhere, application_name: 'reports' }),
  }),
  'a Client of pg': () => ({ client: new Client({ ...required(), application_name: 'reports' }) }),
  'a Client of pg by URL': () => ({
    client: new Client({ connectionString: `${url()}?application_name=reports`, ssl: required().ssl }),
  }),
  'postgres.js': () => lasting(postgresJs({ ...required(), connection: { application_name: 'reports' } })),
  'postgres.js by URL': () => lasting(postgresJs(`${url()}?application_name=reports`, { ssl: required().ssl })),
  'postgres.js with a password from a function': () =>
    lasting(
      postgresJs({ ...required(), password: async () => 'se cret', connection: { application_name: 'reports' } }),
    ),
}

/** What a connector of a cloud passes: it connects to the server by itself. */
function elsewhere(): ReturnType<typeof connect> {
  const socket = connect(server.port, server.host)
  // pg asks it to connect, too.
  return Object.assign(socket, { connect: () => socket })
}

interface Session {
  readonly application_name: string
  readonly datname: string
  readonly client_dn: string
}

const sessions = (): Promise<Session[]> =>
  server.query<Session>(`select application_name, datname, client_dn from pg_stat_activity
    join pg_stat_ssl using (pid) where usename = 'strict'`)

async function expectOptions(store: ReturnType<typeof postgres>, name: string): Promise<void> {
  const [claim, waiter] = [claimOf(name, { ttl: 30_000 }), claimOf(name, { ttl: 30_000, queue: true })]
  await hold(store, claim)
  expect(await acquire(store, waiter)).toMatchObject({ held: false })
  await store.watch?.(waiter, () => {}, signal)
  const found = await sessions()
  expect(found).toHaveLength(2)
  for (const session of found)
    expect(session).toEqual({ application_name: 'reports', datname: 'leases', client_dn: '/CN=app' })
  await store[Symbol.asyncDispose]()
  await until('its sessions are closed', async () => (await sessions()).length === 0)
}

test.each(Object.entries(clients))(
  'own connections have the login, database, TLS, client certificate and name of %s',
  async (name, create) => {
    const { client, end } = create()
    await expectOptions(postgres(client), name)
    await end?.()
  },
)

test('own connections have the login, database, TLS, client certificate and name of a URL', async () => {
  await expectOptions((await openStore(`${url()}?application_name=reports&${files()}`)) as never, 'a URL')
})

test('a Client of pg with a stream of its own is refused: own connections would go elsewhere', () => {
  const client = new Client({ ...place(), stream: () => new Duplex() })
  expect(() => postgres(client)).toThrow(
    expect.objectContaining({ code: 'INVALID_ARGUMENT', message: expect.stringMatching(/pass a Pool/) }),
  )
})

/** All that a store and a fence do. */
async function useAll(client: PostgresClient, name: string): Promise<void> {
  const store = postgres(client)
  const [first, second] = [claimOf(name, { note: "it's \\ 🚀" }), claimOf(name, { queue: true })]
  const token = await hold(store, first)
  expect(await acquire(store, second)).toMatchObject({ held: false, ahead: 0, holder: { token } })
  expect(await store.renew(first, signal)).toMatchObject({ token })
  expect(await store.annotate({ ...first, note: 'new' }, signal)).toBe(true)
  expect(await look(store, { name })).toMatchObject([{ token, note: 'new' }, { state: 'waiting' }])
  const [holder] = await look(store, { name })
  expect(holder?.remaining).toBeGreaterThan(0)
  expect(holder?.remaining).toBeLessThanOrEqual(first.ttl)
  expect(await store.release(first, signal)).toBe('released')
  await hold(store, second)
  expect(await store.break(name, { by: 'test' }, signal)).toBeTypeOf('bigint')
  expect(await store.release(second, signal)).toBe('gone')
  await store[Symbol.asyncDispose]()
  const fence = postgresFence(client)
  await fence.install()
  await fence.touch({ name, token })
  expect(await fence.marks.list(name)).toMatchObject([{ resource: name, token, epoch: 0 }])
  await expect(fence.touch({ name, token: token - 1n })).rejects.toMatchObject({ code: 'STALE_TOKEN' })
}

// What a role or database may set that changes how statements are read or answers are written.
test.each([
  ['extra_float_digits', '-10'],
  ['extra_float_digits', '0'],
  ['bytea_output', "'escape'"],
  ['DateStyle', "'SQL, DMY'"],
  ['IntervalStyle', "'sql_standard'"],
  ['TimeZone', "'Asia/Kolkata'"],
  ['standard_conforming_strings', 'off'],
  ['backslash_quote', 'off'],
  ['quote_all_identifiers', 'on'],
  ['transform_null_equals', 'on'],
  ['array_nulls', 'off'],
  ['search_path', "''"],
  ['client_encoding', "'latin1'"],
  ['row_security', 'off'],
  ['default_transaction_deferrable', 'on'],
  ['synchronous_commit', "'off'"],
  ['lock_timeout', '1'],
  ['idle_in_transaction_session_timeout', '10'],
  ['jit_above_cost', '0'],
  ['plan_cache_mode', "'force_custom_plan'"],
  ['enable_indexscan', 'off'],
  ['work_mem', "'64kB'"],
  ['client_min_messages', "'debug1'"],
  ['session_replication_role', "'replica'"],
  ['check_function_bodies', 'off'],
])('leases and fences are as usual for a role with %s = %s', async (setting, value) => {
  await server.query(`alter role relaxed set ${setting} = ${value}`)
  try {
    for (const [name, client] of [
      ['pg', new Pool({ connectionString: server.url('relaxed') })],
      ['postgres.js', postgresJs(server.url('relaxed'), { onnotice() {} })],
    ] as const) {
      await useAll(client, `${setting} ${value} ${name}`)
      await client.end()
    }
  } finally {
    await server.query(`alter role relaxed reset ${setting}`)
  }
})

describe('leases and fences are as usual over a client that converts values:', () => {
  const shout = (value: unknown): unknown => (typeof value === 'string' ? value.toUpperCase() : value)
  test.each<[string, PoolConfig]>([
    [
      'types that make bytes',
      { types: { getTypeParser: () => (value: unknown) => Buffer.from(String(value)) } as never },
    ],
    ['binary', { binary: true } as PoolConfig],
    ['one connection', { max: 1, idleTimeoutMillis: 1 }],
  ])('pg with %s', async (what, options) => {
    const client = new Pool({ connectionString: server.url(), ...options })
    await useAll(client, `pg ${what}`)
    await client.end()
  })
  test.each<[string, object]>([
    ['values in capitals', { transform: { value: { from: shout } } }],
    ['names in camel case', { transform: postgresJs.camel }],
    ['null for undefined', { transform: { undefined: null } }],
    ['types of its own', { types: { text: { to: 25, from: [25], parse: shout, serialize: String } } }],
    ['numbers as bigint', { types: { bigint: postgresJs.BigInt } }],
    ['one connection that lasts 1 s', { max: 1, idle_timeout: 1, max_lifetime: 1, prepare: false }],
  ])('postgres.js with %s', async (what, options) => {
    const client = postgresJs(server.url(), { onnotice() {}, ...options })
    await useAll(client, `postgres.js ${what}`)
    await client.end({ timeout: 0 })
  })
})

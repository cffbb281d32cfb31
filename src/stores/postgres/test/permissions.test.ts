import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { inspect } from 'node:util'
import { Pool } from 'pg'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type PostgresServer, startPostgres } from '../../../../lab/servers/postgres.ts'
import { until } from '../../../../lab/servers/until.ts'
import { clients } from '../../../../test/harnesses/postgres.ts'
import { advisory, migrate, postgres } from '../index.ts'
import { acquire, claimOf, failureOf, hold, look, queryAt, signal, storeAt } from './support.ts'

const secret = 'p@ss:w/rd#%'

// As the documentation says it.
const page = readFileSync(join(import.meta.dirname, '../../../../docs/stores/postgres.md'), 'utf8')
const [, least = ''] = /```sql\n(grant .*?)```/s.exec(page) ?? []

let server: PostgresServer

beforeAll(async () => {
  server = await startPostgres({ password: secret })
  const roles = ['app', 'reader', 'nobody'].map(role => `create role ${role} login password '${secret}';`)
  await server.query(roles.join('\n'))
  // As where nobody has a right that was not given.
  await server.query('alter default privileges revoke execute on functions from public')
  const pool = new Pool({ connectionString: server.url() })
  await migrate(pool)
  await migrate(pool)
  await pool.end()
  await server.query(least)
  await server.query(
    'grant usage on schema holdfast to reader; grant select on holdfast.lease, holdfast.lease_shared, holdfast.lease_line to reader',
  )
})
afterAll(() => server.stop())

test('does everything with the privileges that the documentation lists', async () => {
  expect(least).toMatch(/grant select, insert, update, delete/)
  await using store = storeAt(server.url('app'))
  const [first, second] = [claimOf('a'), claimOf('a', { queue: true })]
  await hold(store, first)
  let woken = false
  expect(await acquire(store, second)).toMatchObject({ held: false, ahead: 0 })
  await store.watch?.(second, () => (woken = true), signal)
  expect(await store.renew(first, signal)).toMatchObject({ held: true })
  expect(await store.annotate({ ...first, note: 'new' }, signal)).toBe(true)
  expect(await look(store, { prefix: '' })).toHaveLength(2)
  expect(await store.release(first, signal)).toBe('released')
  await until('the waiter is woken', () => woken)
  await hold(store, second)
  expect(await store.break(second.name, { by: 'test' }, signal)).toBeTypeOf('bigint')
  expect(await store.release(claimOf('a'), signal)).toBe('gone')
  await Promise.all(Array.from({ length: 600 }, (_, index) => hold(store, claimOf(`pruned ${index}`))))
})

test('lists with only the read privilege, and reports which others are missing', async () => {
  await using store = storeAt(server.url('reader'))
  await look(store, { prefix: '' })
  await using stranger = storeAt(server.url('nobody'))
  for (const [refused, what] of [
    [() => hold(store, claimOf('b')), 'function lease_acquire'],
    [() => store.annotate(claimOf('b'), signal), 'table lease'],
    [() => hold(stranger, claimOf('b')), 'schema holdfast'],
    [() => look(stranger, { prefix: '' }), 'schema holdfast'],
  ] as const) {
    const error = await failureOf(refused())
    expect(error).toMatchObject({ code: 'ACCESS_DENIED', retryable: false })
    expect(error.message).toMatch(
      'may not do what leases need: grant the permissions listed in docs/stores/postgres.md',
    )
    expect(error.message).toMatch(what)
  }
})

test('reports missing tables, and creates them only with the option and the privilege', async () => {
  await server.query('drop schema if exists missing cascade; revoke create on database postgres from app')
  await using store = storeAt(server.url('app'), { schema: 'missing' })
  const error = await failureOf(hold(store, claimOf('a')))
  expect(error).toMatchObject({ code: 'NOT_MIGRATED', retryable: false })
  expect(error.message).toBe(
    'the table "missing"."lease" does not exist: create it with holdfast migrate --store URL, or let the store create it ' +
      'with create: true (?create=true in a URL)',
  )
  await using eager = storeAt(server.url('app'), { schema: 'missing', create: true })
  expect(await failureOf(hold(eager, claimOf('a')))).toMatchObject({
    code: 'ACCESS_DENIED',
    message: expect.stringMatching(/may not do what leases need.*permission denied for database/),
  })
  const pool = new Pool({ connectionString: server.url('app') })
  expect(await failureOf(migrate(pool, { schema: 'missing' }))).toMatchObject({
    code: 'ACCESS_DENIED',
    message: expect.stringMatching(/migrate as .* a role with create on the database \(permission denied for database/),
  })
  await pool.end()
  await server.query('grant create on database postgres to app')
  await hold(eager, claimOf('a'))
  await hold(store, claimOf('b'))
})

test('creates the tables in an existing schema with only the privilege to create in it, repeatedly', async () => {
  await server.query('drop schema if exists given cascade; drop role if exists owner')
  await server.query(
    `create role owner login password '${secret}'; create schema given; grant all on schema given to owner`,
  )
  const pool = new Pool({ connectionString: server.url('owner') })
  for (let turn = 0; turn < 2; turn += 1) await migrate(pool, { schema: 'given' })
  await using store = postgres(pool, { schema: 'given' })
  await hold(store, claimOf('a'))
  await pool.end()
})

test('refuses a database that cannot store every name, and a server that is too old', async () => {
  for (const name of ['western', 'past']) await server.query(`drop database if exists ${name} with (force)`)
  await server.query("create database western encoding 'LATIN1' locale 'C' template template0")
  await server.query('create database past')
  const past = server.url().replace(/postgres$/, 'past')
  // What the server says of itself, as an older one would.
  await queryAt(
    past,
    `alter function pg_catalog.current_setting(text) rename to real_setting;
    create function pg_catalog.current_setting(name text) returns text language sql as
    $$ select case name when 'server_version_num' then '110022' else pg_catalog.real_setting(name) end $$`,
  )
  for (const [url, message] of [
    [
      server.url().replace(/postgres$/, 'western'),
      'the database has the encoding LATIN1: use a database with the encoding UTF8',
    ],
    [past, 'the server is PostgreSQL 11: use version 12 or later'],
  ] as const) {
    const pool = new Pool({ connectionString: url })
    for (const store of [postgres(pool, { create: true }), advisory(pool, { create: true })]) {
      const refused = { code: 'STORE_UNAVAILABLE', retryable: false, message }
      expect(await failureOf(hold(store, claimOf('a')))).toMatchObject(refused)
      expect(await failureOf(migrate(pool))).toMatchObject(refused)
      await store[Symbol.asyncDispose]()
    }
    await pool.end()
  }
})

test('refuses a foreign table, or one of another format, and does not change it', async () => {
  await server.query('drop schema if exists foreigner, newer cascade')
  await server.query(`create schema foreigner; create table foreigner.lease (id integer);
    create schema newer; create table newer.lease (id integer); comment on table newer.lease is 'Holdfast leases, format 9'`)
  const pool = new Pool({ connectionString: server.url() })
  for (const [schema, code, message] of [
    ['foreigner', 'INVALID_ARGUMENT', /belongs to another application: choose another name with the option table/],
    [
      'newer',
      'FORMAT_MISMATCH',
      /has format 9, and this version of Holdfast supports format 2: use the same version everywhere/,
    ],
  ] as const) {
    await using store = storeAt(server.url(), { schema, create: true })
    const expected = { code, message: expect.stringMatching(message) }
    expect(await failureOf(hold(store, claimOf('a')))).toMatchObject(expected)
    expect(await failureOf(migrate(pool, { schema }))).toMatchObject(expected)
    expect(
      await server.query(`select table_name from information_schema.tables where table_schema = '${schema}'`),
    ).toEqual([{ table_name: 'lease' }])
  }
  await pool.end()
})

test.each(Object.entries(clients))(
  'says over %s that the password or the database is wrong, and never which it was',
  async (_, create) => {
    const wrong: [string, RegExp][] = [
      [
        server.url('app', 'a wrong one'),
        /PostgreSQL refused the user name or password: correct them in the client or the URL/,
      ],
      [server.url('unknown', 'a wrong one'), /PostgreSQL refused the user name or password/],
      [server.url('app', ''), /PostgreSQL refused the user name or password/],
      [server.url('app', secret).replace('/postgres', '/elsewhere'), /the database does not exist: correct its name/],
    ]
    for (const [url, message] of wrong) {
      const { client, close } = create(url)
      await using store = postgres(client)
      const error = await failureOf(hold(store, claimOf('a')))
      expect(error).toMatchObject({
        code: /elsewhere/.test(url) ? 'INVALID_ARGUMENT' : 'ACCESS_DENIED',
        retryable: false,
        message: expect.stringMatching(message),
      })
      expect(inspect(error, { depth: 10, showHidden: true })).not.toMatch('a wrong one')
      await close()
    }
  },
)

test('says that nobody answers', async () => {
  await using down = await startPostgres()
  await down.kill()
  for (const create of Object.values(clients)) {
    const { client, close } = create(down.url())
    await using store = postgres(client)
    expect(await failureOf(hold(store, claimOf('a')))).toMatchObject({
      code: 'STORE_UNAVAILABLE',
      retryable: true,
      message: expect.stringMatching(/PostgreSQL cannot be reached: .*ECONNREFUSED/),
    })
    await close()
  }
})

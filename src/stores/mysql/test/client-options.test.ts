import { readFileSync } from 'node:fs'
import { createConnection, createPool, createPoolCluster, type PoolOptions } from 'mysql2'
import { createConnection as createPromised, createPool as createPromisedPool } from 'mysql2/promise'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type MariaDbServer, startMariaDb } from '../../../../lab/servers/mariadb.ts'
import type { Store } from '../../../contract/store.ts'
import { openMarks } from '../../../marks.ts'
import { openStore } from '../../../store.ts'
import { certificateFor } from '../../url/test/certificate-for.ts'
import { type MysqlClient, mysql } from '../index.ts'
import { acquire, claimOf, failureOf, hold, look, signal } from './support.ts'

const [forName, forAddress] = [certificateFor('DNS:localhost'), certificateFor('IP:127.0.0.1')]
let [named, addressed]: MariaDbServer[] = []

beforeAll(async () => {
  const servers = [forName, forAddress].map(({ key, cert }) =>
    startMariaDb({ config: { ssl_key: key, ssl_cert: cert, ssl_ca: cert } }),
  )
  ;[named, addressed] = await Promise.all(servers)
  await addressed?.query("create user strict@'%' identified by 'secret' require x509")
  await addressed?.query("grant all on app.* to strict@'%'")
})
afterAll(async () => {
  for (const server of [named, addressed]) await server?.stop()
})

const ways: Record<string, (url: string, ca: string) => Promise<Store>> = {
  'a URL': (url, ca) => openStore(`${url}?create=true&tls=true&ca=${ca}`),
  async 'a pool that verifies the identity'(url, ca) {
    const ssl = { ca: readFileSync(ca, 'utf8'), verifyIdentity: true }
    return mysql(createPool({ uri: url, ssl }), { create: true })
  },
}

describe.each([
  ['localhost', '127.0.0.1', 'refused', () => [named, forName.cert] as const],
  ['localhost', 'localhost', 'accepted', () => [named, forName.cert] as const],
  ['127.0.0.1', '127.0.0.1', 'accepted', () => [addressed, forAddress.cert] as const],
  ['127.0.0.1', 'localhost', 'refused', () => [addressed, forAddress.cert] as const],
])('a certificate for %s of a server at %s is %s', (_, host, outcome, get) => {
  test.each(Object.entries(ways))('over %s', async (way, open) => {
    const [server, ca] = get()
    await using store = await open(String(server?.url()).replace('127.0.0.1', host), ca)
    const asked = hold(store, claimOf(`${way} ${host}`, { ttl: 30_000 }))
    if (outcome === 'accepted') await asked
    else expect(await failureOf(asked)).toMatchObject({ message: expect.stringMatching(/does not match certificate/) })
  })

  test('over the marks of a fence', async () => {
    const [server, ca] = get()
    const url = String(server?.url()).replace('127.0.0.1', host)
    await using marks = await openMarks(`${url}?tls=true&ca=${ca}`)
    const error = await failureOf(marks.list())
    // There is no table, which only a server that was accepted can say.
    const said = outcome === 'accepted' ? /holdfast fence sql/ : /does not match certificate/
    expect(error.message).toMatch(said)
  })
})

const required = (): PoolOptions => ({
  host: '127.0.0.1',
  port: addressed?.port as number,
  user: 'strict',
  password: 'secret',
  database: 'app',
  ssl: pem(forAddress),
  charset: 'latin1',
})

function pem({ key, cert }: { key: string; cert: string }): { ca: string; key: string; cert: string } {
  const [own, shown] = [readFileSync(key, 'utf8'), readFileSync(cert, 'utf8')]
  return { ca: shown, key: own, cert: shown }
}

const makes: Record<string, (options: PoolOptions) => MysqlClient | Promise<MysqlClient>> = {
  'a pool': createPool,
  'a pool with promises': createPromisedPool,
  'a connection': options => createConnection(options),
  'a connection with promises': options => createPromised(options),
}

describe.each(Object.entries(makes))('over %s', (kind, make) => {
  test('the own connection has its user, client certificate and database', async () => {
    const client = (await make(required())) as MysqlClient & { end(): unknown }
    const store = mysql(client, { create: true })
    await hold(store, claimOf(`strict ${kind}`, { ttl: 30_000 }))
    const sessions = await addressed?.query<{ db: string }>(
      "select db from information_schema.processlist where user = 'strict'",
    )
    expect(sessions?.length).toBeGreaterThan(0)
    for (const session of sessions ?? []) expect(session).toEqual({ db: 'app' })
    await store[Symbol.asyncDispose]()
    await client.end()
  })
})

// What a caller may set that changes how statements are sent or answers are read.
test.each<[PoolOptions]>([
  [{ supportBigNumbers: true, bigNumberStrings: true }],
  [{ decimalNumbers: true, dateStrings: true, jsonStrings: true, timezone: '+09:00' }],
  [{ typeCast: () => 'x' }],
  [{ nestTables: '_', rowsAsArray: false }],
  [{ namedPlaceholders: true, multipleStatements: true, stringifyObjects: true, disableEval: true }],
  [{ queryFormat: () => 'select nothing' }],
  [{ charset: 'sjis_japanese_ci' }],
  [{ compress: true, connectAttributes: { program: 'x' } }],
  [{ flags: ['-FOUND_ROWS', '-IGNORE_SPACE'] }],
])('leases are as usual over a client with %o', async options => {
  const client = createPool({ uri: addressed?.url() as string, ...options })
  const store = mysql(client, { create: true })
  const [first, second] = [claimOf("ü 'x' \\", { note: 'täglich 🚀' }), claimOf("ü 'x' \\", { queue: true })]
  const token = await hold(store, first)
  expect(await acquire(store, second)).toMatchObject({ held: false, ahead: 0, holder: { token, note: 'täglich 🚀' } })
  expect(await store.renew(first, signal)).toMatchObject({ token })
  expect(await look(store, { name: first.name })).toMatchObject([{ token }, { state: 'waiting' }])
  expect(await store.release(first, signal)).toBe('released')
  expect(await hold(store, second)).toBeGreaterThan(token)
  expect(await store.release(second, signal)).toBe('released')
  await store[Symbol.asyncDispose]()
  client.end()
})

test('a cluster of pools is refused: leases need one database', () => {
  expect(() => mysql(createPoolCluster() as never)).toThrow(expect.objectContaining({ code: 'INVALID_ARGUMENT' }))
})

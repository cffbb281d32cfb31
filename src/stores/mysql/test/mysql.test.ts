import { execFile } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { createConnection, createPool } from 'mysql2'
import { createConnection as createPromised, createPool as createPromisedPool } from 'mysql2/promise'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type MariaDbServer, startMariaDb } from '../../../../lab/servers/mariadb.ts'
import { until } from '../../../../lab/servers/until.ts'
import { createLocks, type Locks, migrate } from '../../../index.ts'
import { openStore } from '../../../store.ts'
import { type MysqlClient, mysql } from '../index.ts'
import { acquire, claimOf, failureOf, hold, look, signal, storeAt, transaction } from './support.ts'

const SECRET = 'p@ss:w/rd#%'

let server: MariaDbServer

beforeAll(async () => {
  // Nothing that a server may be set to matters.
  server = await startMariaDb({
    password: SECRET,
    config: {
      default_time_zone: '+05:30',
      character_set_server: 'latin1',
      sql_mode: 'ANSI,NO_BACKSLASH_ESCAPES,PAD_CHAR_TO_FULL_LENGTH',
      transaction_isolation: 'SERIALIZABLE',
      autocommit: 0,
    },
  })
  await using store = storeAt(server.url())
  await hold(store, claimOf('first'))
})
afterAll(() => server.stop())

const clients: Record<string, () => MysqlClient | Promise<MysqlClient>> = {
  'a pool': () => createPool({ uri: server.url(), charset: 'latin1', typeCast: () => 'x', dateStrings: true }),
  'a pool with promises': () =>
    createPromisedPool({ uri: server.url(), bigNumberStrings: true, supportBigNumbers: true }),
  'a connection': () => createConnection({ uri: server.url(), rowsAsArray: false }),
  'a connection with promises': () => createPromised(server.url()),
}

describe.each(Object.keys(clients))('over %s', kind => {
  test('it keeps leases, over a connection of its own', async () => {
    const client = (await clients[kind]?.()) as MysqlClient & { end(): unknown }
    const store = mysql(client)
    const claim = claimOf(`Ü ${kind} 'x"\\`, { note: 'täglich 🚀', owner: "o'" })
    await hold(store, claim)
    expect(await look(store, { name: claim.name })).toMatchObject([
      { name: claim.name, note: 'täglich 🚀', owner: "o'", state: 'held' },
    ])
    expect(await store.release(claim, signal)).toBe('released')
    await store[Symbol.asyncDispose]()
    await client.end() // rejects if the store had closed it
  })
})

/** Like a connection of the package mysql. */
const oldPackage = { query() {}, escape: String, config: { charsetNumber: 33 } }

test.each([[{}], [undefined], ['mysql://localhost'], [{ query() {}, escape: String, config: {} }], [oldPackage]])(
  'what is no client is refused: %o',
  client => {
    expect(() => mysql(client as never)).toThrow(expect.objectContaining({ code: 'INVALID_ARGUMENT' }))
  },
)

test('names are compared byte by byte', async () => {
  await using store = storeAt(server.url())
  const names = [
    'é',
    'é'.normalize('NFD'),
    'É',
    'e',
    'E',
    'e ',
    ' e',
    'ß',
    'ss',
    'e\u00ad'.slice(0, 1).padEnd(255, 'x'),
  ]
  await Promise.all(names.map(name => hold(store, claimOf(`bytes/${name}`.slice(0, 255)))))
  expect(await look(store, { prefix: 'bytes/' })).toHaveLength(names.length)
})

test('many stores that ask for the same new names at once: each has one holder, and nothing is rejected', async () => {
  const stores = Array.from({ length: 12 }, () => storeAt(server.url()))
  const names = Array.from({ length: 40 }, (_, index) => `crowd ${index}`)
  const answers = await Promise.all(
    stores.flatMap(store => names.map(name => acquire(store, claimOf(name, { queue: Math.random() < 0.5 })))),
  )
  expect(answers.filter(({ held }) => held)).toHaveLength(names.length)
  for (const store of stores) await store[Symbol.asyncDispose]()
})

test.each([
  ['a row', "insert into holdfast_lease values ('new row', '[]', 0, 0, 0, 1)", claimOf('new row', { ttl: 9_000 })],
  [
    'the position of a waiter',
    "insert into holdfast_lease_line values ('queue', 'waiter', '', '', 1, 0, 0, 9000, 1, 1, 100, 0)",
    claimOf('queue', { id: 'waiter', queue: true, ttl: 9_000 }),
  ],
])('a transaction that has inserted %s holds up that name alone', async (what, statement, stuck) => {
  await using store = storeAt(server.url())
  await acquire(store, claimOf('queue'))
  await using _foreign = await transaction(server, statement)
  let isRefused = false
  const refused = failureOf(acquire(store, stuck)).finally(() => {
    isRefused = true
  })
  await Promise.all(Array.from({ length: 20 }, (_, index) => hold(store, claimOf(`free ${index} of ${what}`))))
  expect(isRefused).toBe(false)
  expect(await refused).toMatchObject({ code: 'STORE_UNAVAILABLE', message: expect.stringMatching(/is locked/) })
})

test('a release that meets a locked row does not report that nothing was done, for its tombstone may be written', async () => {
  await using store = storeAt(server.url())
  const claim = claimOf('half done')
  const insert = "insert into holdfast_lease values ('half done', '[]', 0, 0, 0, 1)"
  {
    await using _foreign = await transaction(server, insert)
    const error = await failureOf(store.release(claim, signal))
    expect(error).toMatchObject({ code: 'STORE_UNAVAILABLE', message: expect.stringMatching(/is locked by/) })
    expect(error.message).not.toMatch(/nothing/)
  }
  expect(await acquire(store, claim)).toMatchObject({ held: false })
})

test('a waiter that was served while its position was locked is shown once, and nobody waits behind it', async () => {
  await using store = storeAt(server.url())
  const [holder, first] = [claimOf('served'), claimOf('served', { queue: true })]
  await hold(store, holder)
  await acquire(store, first)
  {
    await using _foreign = await transaction(
      server,
      "select * from holdfast_lease_line where name = 'served' for update",
    )
    expect(await store.release(holder, signal)).toBe('released')
    await hold(store, first)
  }
  expect(await look(store, { name: 'served' })).toMatchObject([{ state: 'held' }])
  expect(await acquire(store, claimOf('served', { queue: true }))).toMatchObject({ ahead: 0 })
  expect(await store.release(first, signal)).toBe('released')
  expect(await look(store, { name: 'served' })).toMatchObject([{ state: 'waiting', position: 0 }])
})

test('a row that somebody has locked is neither granted nor renewed, and nobody waits for it', async () => {
  await using store = storeAt(server.url())
  const claim = claimOf('locked', { ttl: 3_000 })
  const token = await hold(store, claim)
  {
    await using _foreign = await transaction(server, "select * from holdfast_lease where name = 'locked' for update")
    const renewal = failureOf(store.renew(claim, signal))
    await hold(store, claimOf('not locked'))
    // The last try may find the lock, or be refused as too late.
    const code = expect.stringMatching(/^(STORE_UNAVAILABLE|OUTCOME_UNKNOWN)$/)
    expect(await renewal).toMatchObject({ code, retryable: true })
    expect(await acquire(store, claimOf('locked'))).toMatchObject({ held: false })
  }
  expect(await store.renew({ ...claim, ttl: 10_000 }, signal)).toMatchObject({ token })
  const taken = transaction(server, "select * from holdfast_lease where name = 'locked' for update")
  const released = taken.then(async foreign => {
    const release = store.release(claim, signal)
    await hold(store, claimOf('meanwhile'))
    await foreign[Symbol.asyncDispose]()
    return release
  })
  expect(await released).toBe('released')
})

test('a claim that loses writes nothing', async () => {
  await using quiet = await startMariaDb({ config: { innodb_stats_auto_recalc: 'off' } })
  await using store = storeAt(quiet.url())
  await hold(store, claimOf('hot'))
  const written = async (): Promise<unknown> => {
    const of = "show global status where variable_name in ('Com_insert', 'Com_update_multi', 'Com_delete_multi')"
    return quiet.query(of)
  }
  const before = await written()
  for (let tries = 0; tries < 20; tries += 1)
    expect(await acquire(store, claimOf('hot'))).toMatchObject({ held: false })
  expect(await written()).toEqual(before)
})

test('leases live, and waiters are served, while somebody ends all connections again and again', async () => {
  const [one, two] = [0, 1].map(() => createLocks(storeAt(server.url()), { ttl: 5_000 })) as [Locks, Locks]
  const lease = await one.acquire('killed')
  const waiting = two.acquire('killed')
  for (let turn = 0; turn < 20; turn += 1) {
    await server.query('kill user app').catch(() => {}) // it ends its own, too
    await new Promise(resolve => setTimeout(resolve, 50))
  }
  lease.assertHeld()
  await until('it is renewed', () => lease.extend().catch(() => undefined))
  await lease.release()
  const next = await waiting
  expect(next.token).toBeGreaterThan(lease.token)
  await next.release()
  for (const locks of [one, two]) await locks.close()
})

test('needs only the privileges that the documentation lists, and says what else is missing', async () => {
  const page = readFileSync(join(import.meta.dirname, '../../../../docs/stores/mysql.md'), 'utf8')
  const [, least = ''] = /```sql\n(grant .*?)```/s.exec(page) ?? []
  await server.query("create user if not exists least@'%' identified by 'x'")
  for (const grant of least.trim().split(';').filter(Boolean))
    await server.query(grant.replace(/to app$/, "to least@'%'"))
  await using store = storeAt(server.url('least', 'x'), {})
  const [first, second] = [claimOf('least'), claimOf('least', { queue: true })]
  await hold(store, first)
  expect(await acquire(store, second)).toMatchObject({ held: false, ahead: 0 })
  expect(await store.renew(first, signal)).toMatchObject({ held: true })
  expect(await store.annotate({ ...first, note: 'new' }, signal)).toBe(true)
  expect(await store.release(first, signal)).toBe('released')
  await hold(store, second)
  expect(await store.break('least', { by: 'test' }, signal)).toBeTypeOf('bigint')
  expect(await store.release(claimOf('least'), signal)).toBe('gone')
  await server.query("revoke insert on app.holdfast_lease_line from least@'%'")
  await using revoked = storeAt(server.url('least', 'x'), {})
  expect(await failureOf(revoked.release(claimOf('least'), signal))).toMatchObject({
    code: 'ACCESS_DENIED',
    message: expect.stringMatching(/grant the privileges/),
  })
  await server.query("revoke select, insert, update, delete on app.holdfast_lease from least@'%'")
  await using unseen = storeAt(server.url('least', 'x'), {})
  expect(await failureOf(hold(unseen, claimOf('a')))).toMatchObject({
    code: 'ACCESS_DENIED',
    message: expect.stringMatching(/grant the privileges .*SELECT command denied/),
  })
  expect(await failureOf(hold(storeAt(server.url('least', 'wrong')), claimOf('a')))).toMatchObject({
    code: 'ACCESS_DENIED',
    message: expect.stringMatching(/user name or password/),
  })
})

test('a URL names the tables, which migrate creates, and no error has the password in it', async () => {
  await server.query('drop table if exists of_url, of_url_line')
  const url = `${server.url()}?table=of_url`
  await using missing = await openStore(url)
  const error = await failureOf(hold(missing, claimOf('a')))
  expect(error).toMatchObject({ code: 'NOT_MIGRATED', message: expect.stringMatching(/holdfast migrate/) })
  await migrate(url)
  await migrate(url)
  await using store = await openStore(url.replace('mysql:', 'mariadb:'))
  await hold(store, claimOf('a'))
  for (const wrong of [
    'mysql://localhost',
    `mysql://app:${SECRET}@localhost/app`,
    'mysql://localhost/a/b',
    'mysql://localhost/app?create=yes',
    'mysql://localhost/app?table=a-b',
    'mysql://localhost/app?colour=red',
  ]) {
    const refusal = await failureOf(openStore(wrong))
    expect(refusal).toMatchObject({ code: 'INVALID_ARGUMENT' })
    expect(refusal.message).not.toContain(SECRET)
  }
})

test.each([
  ['Holdfast leases, format 1', 'FORMAT_MISMATCH', 'has format 1, and this version of Holdfast supports format 2'],
  ['Holdfast leases, format 3', 'FORMAT_MISMATCH', 'has format 3, and this version of Holdfast supports format 2'],
  ['', 'INVALID_ARGUMENT', 'belongs to another application: choose another name'],
])('a table with the comment %j is refused, and stays as it is', async (comment, code, says) => {
  await using store = storeAt(server.url(), { table: 'theirs', create: true })
  await server.query(`create or replace table theirs (name int) comment = '${comment}'`)
  expect(await failureOf(acquire(store, claimOf('a')))).toMatchObject({
    code,
    message: expect.stringContaining(`the table theirs ${says}`),
  })
  expect(await server.query("show tables like 'theirs%'")).toHaveLength(1)
})

test('several processes may create the tables at once', async () => {
  for (let round = 0; round < 10; round += 1) {
    const table = `created_${round}`
    const stores = Array.from({ length: 4 }, () => storeAt(server.url(), { table, create: true }))
    const answers = await Promise.all(stores.map(store => acquire(store, claimOf('a'))))
    expect(answers.filter(({ held }) => held)).toHaveLength(1)
    await Promise.all(stores.map(store => store[Symbol.asyncDispose]()))
  }
})

test('a process that gives up on a server that does not answer ends at once', async () => {
  const hanging = createServer(() => {}).listen(0, '127.0.0.1')
  await until('it listens', () => hanging.listening)
  const { port } = hanging.address() as { port: number }
  const script = `
    import { connect } from ${JSON.stringify(join(import.meta.dirname, '../../../index.ts'))}
    const locks = await connect('mysql://127.0.0.1:${port}/app', { lazy: true })
    await locks.acquire('a', { signal: AbortSignal.timeout(200) }).catch(() => {})
    await locks.close()
    console.log(String(performance.now()))`
  const flags = process.features.typescript
    ? []
    : ['--experimental-strip-types', '--disable-warning=ExperimentalWarning']
  const began = performance.now()
  const { stdout } = await promisify(execFile)(process.execPath, [...flags, '--input-type=module', '-e', script])
  const elapsed = performance.now() - began
  expect(elapsed - Number(stdout)).toBeLessThan(5_000)
  hanging.close()
})

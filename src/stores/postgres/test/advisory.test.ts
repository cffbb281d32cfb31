import { Pool } from 'pg'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { startPgBouncer } from '../../../../lab/servers/pgbouncer.ts'
import { type PostgresServer, startPostgres } from '../../../../lab/servers/postgres.ts'
import { startProxy } from '../../../../lab/servers/proxy.ts'
import { until } from '../../../../lab/servers/until.ts'
import { clients } from '../../../../test/harnesses/postgres.ts'
import type { Store } from '../../../contract/store.ts'
import { createLocks } from '../../../index.ts'
import { Session } from '../advisory/session.ts'
import { driverOf } from '../driver.ts'
import { advisory } from '../index.ts'
import { namesOf } from '../names.ts'
import { acquire, claimOf, failureOf, hold, look, queryAt, signal, transaction } from './support.ts'

let server: PostgresServer

beforeAll(async () => {
  server = await startPostgres()
  await using store = storeOf()
  await look(store, { prefix: '' })
})
afterAll(() => server.stop())

function storeOf(options: object = {}, url = server.url()): Store {
  return advisory(new Pool({ connectionString: url }), { create: true, ...options })
}

const sessions = "from pg_stat_activity where backend_type = 'client backend' and pid <> pg_backend_pid()"

describe.each(Object.entries(clients))('%s', (name, create) => {
  test('holds many names over one connection, which it closes', async () => {
    const { client, close } = create(server.url())
    const store = advisory(client)
    const locks = createLocks(store, { ttl: 3_000 })
    const leases = await Promise.all(Array.from({ length: 50 }, (_, index) => locks.acquire(`${name} ${index}`)))
    await new Promise(resolve => setTimeout(resolve, 4_000))
    for (const lease of leases) lease.assertHeld()
    await Promise.all(leases.map(lease => lease.annotate(`note of ${lease.name}`)))
    expect((await locks.inspect(`${name} 7`)).holders[0]?.note).toBe(`note of ${name} 7`)
    expect(await server.query(`select pid ${sessions}`)).toHaveLength(1)
    expect(await server.query("select from pg_locks where locktype = 'advisory'")).toHaveLength(50)
    await Promise.all(leases.map(lease => lease.release()))
    expect(await server.query("select from pg_locks where locktype = 'advisory'")).toEqual([])
    await locks.close()
    await close()
    await until('it is closed', async () => (await server.query(`select pid ${sessions}`)).length === 0)
  })
})

test('notifies all holders at once when the session ends, and serves again over another', async () => {
  const locks = createLocks(storeOf({ ttl: 60_000 }), { ttl: 60_000 })
  const leases = await Promise.all([1, 2, 3].map(index => locks.acquire(`ended ${index}`)))
  const told: number[] = []
  for (const lease of leases) lease.signal.addEventListener('abort', () => told.push(performance.now()))
  const ended = performance.now()
  await server.query(`select pg_terminate_backend(pid) ${sessions}`)
  await until('all are told', () => told.length === 3)
  expect(Math.max(...told) - ended).toBeLessThan(10_000) // a renewal would come after 15 s at the earliest
  for (const lease of leases) expect(() => lease.assertHeld()).toThrow(expect.objectContaining({ code: 'LEASE_LOST' }))
  const again = await locks.acquire('ended 1')
  expect(again.token).toBeGreaterThan(leases[0]?.token ?? 0n)
  await again.release()
  await locks.close()
})

test('the refusal of a withdrawn claim is not that of another claim of the process', async () => {
  await using proxy = await startProxy(server)
  await using store = storeOf({}, server.urlBy(proxy.port))
  await look(store, { prefix: '' }) // connects
  const [one, two] = [claimOf('asked twice'), claimOf('asked twice')]
  proxy.up.hold()
  const answers = [acquire(store, one), acquire(store, two)]
  expect(await store.release(one, signal)).toBe('gone')
  proxy.up.pass()
  expect(await Promise.all(answers)).toMatchObject([{ held: false }, { held: true }])
})

test('passes on the names of an unresponsive holder after the timeout of its connection, and not before', async () => {
  const ttl = 1_000
  await using proxy = await startProxy(server)
  const holder = createLocks(storeOf({ ttl }, server.urlBy(proxy.port)), { ttl })
  await using other = storeOf()
  const lease = await holder.acquire('silent')
  let told = Number.POSITIVE_INFINITY
  lease.signal.addEventListener('abort', () => (told = performance.now()))
  const cut = performance.now()
  proxy.up.hold()
  proxy.down.hold()
  const claim = claimOf('silent', { ttl: 300 })
  const token = await until('it is passed on', async () => {
    const answer = await acquire(other, claim)
    return answer.held ? answer.token : undefined
  })
  const passed = performance.now()
  expect(told).toBeLessThan(passed)
  expect(passed - cut).toBeGreaterThan(ttl / 2)
  expect(token).toBeGreaterThan(lease.token)
  proxy.up.pass()
  proxy.down.pass()
  await holder.close({ grace: 0 })
})

test.each([1_000, 5_000, 10_000, 60_000])(
  'lets no keepalives end the connection before its ttl of %i ms, on servers without a timeout of TCP either',
  async ttl => {
    const options = { names: namesOf({}), create: false, ttl }
    const driver = driverOf(new Pool({ connectionString: server.url() }), 'test')
    const session = await Session.open(driver, options, () => {}, signal)
    const [idle, interval, count] = ['idle', 'interval', 'count'].map(
      each => `current_setting('tcp_keepalives_${each}')`,
    )
    const text = `select ${idle}::integer + ${interval}::integer * ${count}::integer, $0`
    const seconds = Number(await session.ask(text, []))
    expect(seconds).toBeGreaterThanOrEqual(ttl / 1_000)
    expect(seconds).toBeLessThanOrEqual((2 * ttl) / 1_000)
    session.close()
  },
)

test('releases a lease that is not renewed at the end of its ttl, while others continue', async () => {
  const locks = createLocks(storeOf(), { ttl: 6_000 })
  await using other = storeOf()
  const kept = await locks.acquire('kept')
  const fixed = await locks.acquire('fixed', { heartbeat: false, ttl: 1_500 })
  const claim = claimOf('fixed', { ttl: 300 })
  await until('it is passed on', async () => (await acquire(other, claim)).held)
  expect(() => fixed.assertHeld()).toThrow(expect.objectContaining({ code: 'LEASE_LOST' }))
  kept.assertHeld()
  expect(await acquire(other, claimOf('kept'))).toMatchObject({ held: false, holder: { token: kept.token } })
  await locks.close({ grace: 0 })
})

test('opens another session when the server has ended one that was idle', async () => {
  await using store = storeOf({ ttl: 300 })
  // To connect may take longer than so short a ttl leaves.
  for (const name of ['first', 'second']) {
    await until('it is had', () => hold(store, claimOf(name, { ttl: 300 })).catch(() => undefined))
    await until('the server ends it', async () => (await server.query(`select pid ${sessions}`)).length === 0)
  }
})

test('raises tokens across sessions, restarts and lost data', async () => {
  let last = 0n
  for (let turn = 0; turn < 3; turn += 1) {
    const store = storeOf()
    for (let again = 0; again < 3; again += 1) {
      const claim = claimOf('rising')
      const token = await hold(store, claim)
      expect(token).toBeGreaterThan(last)
      last = token
      if (again < 2) await store.release(claim, signal)
    }
    if (turn === 1) await server.query('truncate holdfast.lease_token')
    await server.restart()
    await store[Symbol.asyncDispose]()
  }
})

test('keeps its leases when a request fails, and nothing of the failed request', async () => {
  const locks = createLocks(storeOf({ ttl: 3_000 }), { ttl: 3_000 })
  await using other = storeOf()
  const kept = await locks.acquire('kept through')
  const locked = await transaction(server, 'lock table holdfast.lease_token in share mode')
  const failed = await failureOf(locks.tryAcquire('failing'))
  expect(failed).toMatchObject({ code: 'STORE_UNAVAILABLE' })
  await until('the lock is given back', async () => {
    const [row] = await server.query<{ count: number }>(
      "select count(*)::integer from pg_locks where locktype = 'advisory'",
    )
    return row?.count === 1
  })
  await locked.end()
  await hold(other, claimOf('failing'))
  kept.assertHeld()
  await kept.release()
  await locks.close()
})

test.each(['transaction', 'session', 'statement'] as const)('refuses a pooler in %s mode', async mode => {
  await using pooler = await startPgBouncer(server, { mode })
  for (const create of Object.values(clients)) {
    const { client, close } = create(pooler.url)
    await using store = advisory(client)
    expect(await failureOf(hold(store, claimOf('pooled')))).toMatchObject({
      code: 'INVALID_ARGUMENT',
      message: expect.stringMatching(
        /goes through a pooler such as pgbouncer: connect to PostgreSQL directly, or use postgres/,
      ),
    })
    await close()
  }
})

test('refuses to break a lease, a ttl longer than that of its connection, and wrong options', async () => {
  await using store = storeOf()
  await until('it is had', () => hold(store, claimOf('unbroken', { ttl: 300 })).catch(() => undefined))
  expect(await failureOf(store.break('unbroken', { by: 'test' }, signal))).toMatchObject({
    code: 'STORE_UNAVAILABLE',
    retryable: false,
    message: expect.stringMatching(/would end all leases of its session/),
  })
  for (const verb of ['acquire', 'renew'] as const)
    expect(await failureOf(store[verb](claimOf('long', { ttl: 10_001 }), signal))).toMatchObject({
      code: 'INVALID_ARGUMENT',
      message:
        'the ttl of 10001 ms is longer than the 10000 ms of the connection: create the store with { ttl: 10001 }',
    })
  expect(() => advisory(new Pool(), { ttl: 5 })).toThrow('ttl must be a whole number of milliseconds from 10')
  expect(() => advisory(new Pool(), { prefix: 'x' } as object)).toThrow('advisory has no option "prefix"')
  expect(() => advisory({} as Pool)).toThrow('advisory(client) was given an object of Object')
})

test('frees the names of a killed process at once', async () => {
  await using proxy = await startProxy(server)
  const dead = storeOf({ ttl: 60_000 }, server.urlBy(proxy.port))
  await using other = storeOf()
  await hold(dead, claimOf('dead', { ttl: 60_000 }))
  const started = performance.now()
  proxy.up.reset() // as its kernel does
  const next = claimOf('dead', { ttl: 300 })
  await until('it is passed on', async () => (await acquire(other, next)).held)
  expect(performance.now() - started).toBeLessThan(10_000)
  await dead[Symbol.asyncDispose]()
})

test('S10: refuses CockroachDB, which grants every advisory lock to every client', async () => {
  await server.query('drop database if exists cockroach with (force)')
  await server.query('create database cockroach')
  const url = server.url().replace(/postgres$/, 'cockroach')
  // What the server says of itself, as that would.
  await queryAt(
    url,
    `alter function pg_catalog.version() rename to real_version; create function pg_catalog.version() returns text
    language sql as $$ select 'CockroachDB CCL v23.1.11 (x86_64-pc-linux-gnu, built 2023/09/27, go1.19.10)' $$`,
  )
  await using store = storeOf({}, url)
  expect(await failureOf(hold(store, claimOf('a')))).toMatchObject({
    code: 'STORE_UNAVAILABLE',
    message: expect.stringMatching(/CockroachDB grants every advisory lock to every client: use another store/),
  })
})

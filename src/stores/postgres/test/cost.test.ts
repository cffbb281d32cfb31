import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { inTime, TooSlow } from '../../../../lab/conformance/timing.ts'
import { type PostgresServer, startPostgres } from '../../../../lab/servers/postgres.ts'
import { until } from '../../../../lab/servers/until.ts'
import type { Store } from '../../../contract/store.ts'
import { TURN } from '../../../contract/time.ts'
import { createLocks } from '../../../index.ts'
import { acquire, claimOf, hold, look, signal, storeAt } from './support.ts'

let server: PostgresServer
let store: Store

beforeAll(async () => {
  // Nothing but requests writes.
  const config = { autovacuum: 'off', wal_level: 'minimal', max_wal_senders: 0, log_statement: 'all' }
  server = await startPostgres({ config })
  store = storeAt(server.url())
})
afterAll(async () => {
  await store[Symbol.asyncDispose]()
  await server.stop()
})

/** Where the write-ahead log ends. What does not move that has nothing to sync. */
async function log(): Promise<unknown> {
  return server.query('select pg_current_wal_insert_lsn() as end')
}

/** How often a function was called. */
function calls(name: string): number {
  return server.output.split(new RegExp(`"lease_${name}(?:_one)?_2"\\(E`)).length - 1
}

test('a claim that loses or is late, or a waiter that keeps its position, writes nothing to the log', async () => {
  await inTime(250, async () => {
    const attempt = randomUUID()
    const [ttl, hot, open, idle] = [60_000, `hot ${attempt}`, `free ${attempt}`, `idle ${attempt}`]
    await hold(store, claimOf(hot, { ttl }))
    const waiter = claimOf(hot, { ttl, queue: true })
    const late = claimOf('late')
    await store.release(late, signal)
    const free = claimOf(open)
    await hold(store, free)
    await acquire(store, claimOf(open, { ttl, queue: true }))
    await store.release(free, signal)
    // The grace period of its waiter lasts this long.
    await server.query(`update holdfast.lease_line set round_trip = 3600000 where name = '${open}'`)
    await acquire(store, claimOf(open))
    await acquire(store, waiter)
    const joined = performance.now()
    await acquire(store, waiter) // the first read of a page prunes it
    const noted = claimOf(idle)
    await hold(store, noted)
    await store.release(noted, signal)
    const tooLate = `select holdfast.lease_acquire_one_2('${idle}', 'id', '', '', ${ttl}, true, 1, 1, 0, 1, null)`
    await server.query(tooLate)
    const before = await log()
    await server.query(tooLate)
    for (let tries = 0; tries < 20; tries += 1) {
      expect(await acquire(store, claimOf(hot))).toMatchObject({ held: false })
      expect(await acquire(store, waiter)).toMatchObject({ held: false, ahead: 0 })
      expect(await acquire(store, claimOf(open))).toMatchObject({ held: false })
      expect(await acquire(store, late)).toMatchObject({ held: false })
    }
    await look(store, { prefix: '' })
    const after = await log()
    // A waiter writes that it is there each quarter of 5 s.
    if (performance.now() - joined > 1_200) throw new TooSlow('the waiter wrote that it is there')
    expect(after).toEqual(before)
  })
})

test('one handoff costs one statement on each side, however many wait', async () => {
  await inTime(TURN / 2, async nth => {
    const name = `handed ${nth}`
    const one = createLocks(store)
    await using two = createLocks(storeAt(server.url()))
    const lease = await one.acquire(name)
    const served: number[] = []
    const times: number[] = []
    const waits: Promise<void>[] = []
    for (let index = 0; index < 64; index += 1) {
      const work = async (): Promise<void> => {
        served.push(index)
        times.push(performance.now())
      }
      waits.push((index % 2 ? one : two).using(name, work))
      await until('it has joined the line', async () => (await look(store, { name })).length === index + 2)
    }
    const before = { acquire: calls('acquire'), release: calls('release') }
    times.push(performance.now())
    await lease.release()
    await Promise.all(waits)
    if (times.some((time, index) => time - (times[index - 1] ?? time) >= TURN)) throw new TooSlow('a turn passed')
    expect(served).toEqual(Array.from({ length: 64 }, (_, index) => index))
    expect(calls('release') - before.release).toBe(65)
    // One for each, and few more on a busy machine.
    expect(calls('acquire') - before.acquire).toBeLessThan(64 * 1.25)
  })
})

test('a thousand waiters ask only as often as they must to keep their positions', async () => {
  const other = storeAt(server.url())
  const locks = createLocks(other, { ttl: 60_000 })
  const lease = await locks.acquire('crowd')
  const controller = new AbortController()
  const waits = Promise.allSettled(
    Array.from({ length: 1_000 }, () => locks.acquire('crowd', { signal: controller.signal })),
  )
  await until('all wait', async () => (await look(store, { name: 'crowd' })).length === 1_001)
  let before = -1
  await until('each has asked once more, when its watch was armed', async () => {
    before = calls('acquire')
    await new Promise(resolve => setTimeout(resolve, 500))
    return calls('acquire') === before
  })
  await new Promise(resolve => setTimeout(resolve, 1_500))
  expect(calls('acquire') - before).toBeLessThan(5)
  controller.abort()
  await waits
  await lease.release()
  await locks.close()
})

test('simultaneous requests share a statement', async () => {
  const before = ['acquire', 'renew', 'release'].map(calls)
  const claims = Array.from({ length: 256 }, (_, index) => claimOf(`shared ${index}`))
  await Promise.all(claims.map(claim => hold(store, claim)))
  await Promise.all(claims.map(claim => store.renew(claim, signal)))
  await Promise.all(claims.map(claim => store.release(claim, signal)))
  const after = ['acquire', 'renew', 'release'].map(calls)
  for (const [index, count] of after.entries()) expect(count - (before[index] ?? 0)).toBeLessThanOrEqual(3)
})

test('only names that are idle for a day are deleted', async () => {
  await server.query('drop schema if exists pruned cascade')
  const other = storeAt(server.url(), { create: true, schema: 'pruned' })
  const kept = [claimOf('kept held'), claimOf('kept free'), claimOf('kept waited for')]
  for (const claim of [claimOf('old'), claimOf('zold'), ...kept]) {
    await hold(other, claim)
    if (claim.name !== 'kept held') await other.release(claim, signal)
  }
  await server.query(`update pruned.lease set expires_at = now() - interval '25 hours', token = 5
    where name in ('old', 'zold', 'kept waited for')`)
  // It was held for long.
  await server.query("update pruned.lease set token = 5 where name = 'kept free'")
  await server.query(`insert into pruned.lease_line (name, id, owner, note, lapses_at, gone) values
    ('kept waited for', 'x', '', '', now() + interval '1 hour', false), ('old', 'y', '', '', now(), true)`)
  const names = Array.from({ length: 600 }, (_, index) => claimOf(`b${index}`))
  await Promise.all(names.map(claim => hold(other, claim)))
  await until('it is gone', async () => {
    const rows = await server.query(`select from pruned.lease where name like '%old'`)
    return rows.length === 0
  })
  const rows = await server.query<{ name: string }>(
    `select name from pruned.lease where name like 'kept%' order by name`,
  )
  expect(rows.map(({ name }) => name)).toEqual(['kept free', 'kept held', 'kept waited for'])
  expect(await server.query('select from pruned.lease_line')).toHaveLength(1)
  await other[Symbol.asyncDispose]()
})

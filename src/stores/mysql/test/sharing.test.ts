/** Names with several holders: processes that write one row at the same time. */
import { createPool } from 'mysql2'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type MariaDbServer, startMariaDb } from '../../../../lab/servers/mariadb.ts'
import { until } from '../../../../lab/servers/until.ts'
import { type Claim, LARGEST_LIMIT, type Store } from '../../../contract/store.ts'
import { createLocks } from '../../../index.ts'
import { mysql } from '../index.ts'
import { acquire, claimOf, hold, look, signal, storeAt } from './support.ts'

let server: MariaDbServer
let stores: Store[]

beforeAll(async () => {
  server = await startMariaDb()
  stores = Array.from({ length: 4 }, () => storeAt(server.url()))
  for (const store of stores) await hold(store, claimOf(`warm ${stores.indexOf(store)}`))
})
afterAll(async () => {
  for (const store of stores) await store[Symbol.asyncDispose]()
  await server.stop()
})

const storeOf = (index: number): Store => stores[index % stores.length] as Store

test('permits that several clients request and renew at the same time are all granted, each with a slot of its own', async () => {
  const claims = Array.from({ length: 60 }, () => claimOf('permits', { limit: 60 }))
  const answers = await Promise.all(claims.map((claim, index) => acquire(storeOf(index), claim)))
  const slots = answers.flatMap(answer => (answer.held ? (answer.slots ?? []) : []))
  expect(slots.toSorted((a, b) => a - b)).toEqual(claims.map((_, index) => index))
  expect(await acquire(storeOf(0), claimOf('permits', { limit: 60 }))).toMatchObject({ held: false })
  const renewed = await Promise.all(claims.map((claim, index) => storeOf(index).renew(claim, signal)))
  for (const [index, grant] of renewed.entries()) expect(grant).toMatchObject({ token: Object(answers[index]).token })
  const released = await Promise.all(claims.map((claim, index) => storeOf(index).release(claim, signal)))
  expect(new Set(released)).toEqual(new Set(['released']))
  expect(await look(storeOf(0), { name: 'permits' })).toEqual([])
})

test('a crowd of readers of several clients that waited for a writer is served', async () => {
  const pools = stores.map(() => createPool({ uri: server.url() }))
  const all = pools.map(pool => createLocks(mysql(pool)))
  const writer = await all[0]?.readWrite('pages').writer.acquire()
  const readers = Array.from({ length: 50 }, async (_, index) => {
    const permit = await all[index % all.length]?.readWrite('pages').reader.acquire({ wait: 60_000 })
    await new Promise(resolve => setTimeout(resolve, 100))
    permit?.assertHeld()
    return permit?.release()
  })
  await expect.poll(() => look(storeOf(0), { name: 'pages' }), { timeout: 20_000 }).toHaveLength(51)
  await writer?.release()
  expect(new Set(await Promise.all(readers))).toEqual(new Set(['released']))
  for (const locks of all) await locks.close()
  for (const pool of pools) pool.end()
}, 60_000)

test('five hundred readers hold a name, and a writer follows them', async () => {
  await storeOf(0).break('many', { by: 'test' }, signal)
  const readers = Array.from({ length: 500 }, () => claimOf('many', { limit: LARGEST_LIMIT, ttl: 60_000 }))
  // A busy server may refuse some after a second of conflicts. They ask again, as the core does.
  const answers = await Promise.all(
    readers.map((claim, index) => until('it is answered', () => acquire(storeOf(index), claim))),
  )
  expect(answers.every(({ held }) => held)).toBe(true)
  const writer = claimOf('many', { queue: true, ttl: 60_000 })
  expect(await acquire(storeOf(0), writer)).toMatchObject({ held: false, ahead: 0 })
  expect(await acquire(storeOf(1), claimOf('many', { limit: LARGEST_LIMIT }))).toMatchObject({ held: false, ahead: 1 })
  for (const [index, reader] of readers.entries())
    if (index % 100 === 0) expect(await storeOf(index).renew(reader, signal)).toMatchObject({ held: true })
  await Promise.all(
    readers.map((reader, index) => until('it is answered', async () => storeOf(index).release(reader, signal))),
  )
  expect(await acquire(storeOf(0), writer)).toMatchObject({ held: true, slots: [0] })
}, 60_000)

test('shared leases survive a restart of the server', async () => {
  await using own = await startMariaDb()
  await using store = storeAt(own.url())
  const [pair, one] = [claimOf('kept', { limit: 9, units: 2, ttl: 60_000 }), claimOf('kept', { limit: 3, ttl: 60_000 })]
  for (const claim of [pair, one]) await hold(store, claim)
  await own.restart()
  expect(await look(store, { name: 'kept' })).toMatchObject([
    { limit: 9, slots: [0, 1] },
    { limit: 3, slots: [2] },
  ])
  expect(await acquire(store, claimOf('kept', { limit: 9 }))).toMatchObject({ held: false })
  expect(await store.renew(pair, signal)).toMatchObject({ slots: [0, 1] })
})

test('a waiter that lapsed while nobody held the name restarts the grace period of the next one once', async () => {
  const [store, name] = [storeOf(0), 'lapsed']
  const holder = claimOf(name)
  await hold(store, holder)
  const [first, dead, third] = [1, 2, 3].map(() => claimOf(name, { queue: true }))
  for (const claim of [first, dead, third]) await acquire(store, claim as Claim)
  await store.release(holder, signal)
  await server.query(
    `update app.holdfast_lease_line set lapses = unix_timestamp(now(6)) * 1000000 where id = '${first?.id}'`,
  )
  // Before the position of the second lapses, too.
  await until('the third is served', async () => (await acquire(store, third as Claim)).held, { limit: 3_000 })
})

/** Waiters and holders of a name in a file, on a clock that the test moves. */
import { mkdtempSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { claimOf, look, signal } from '../../../test/support.ts'
import { type Busy, type Claim, type Grant, LARGEST_LIMIT, type Store } from '../../contract/store.ts'
import { type Clock, systemClock, TURN } from '../../contract/time.ts'
import { sqlite } from './index.ts'

let path: string
let store: Store
let now: number
const clock: Clock = { ...systemClock(), wall: () => now }

beforeEach(() => {
  path = join(mkdtempSync(join(tmpdir(), 'holdfast-sqlite-')), 'leases.db')
  now = Date.UTC(2025, 0)
  store = sqlite(path, { clock })
})

afterEach(async () => {
  await store[Symbol.asyncDispose]()
  rmSync(join(path, '..'), { recursive: true })
})

const ask = (claim: Claim): Promise<Grant | Busy> => store.acquire(claim, signal)

/** What the write-ahead log has grown to. */
const written = (): number => statSync(`${path}-wal`).size

test('a waiter that asks again renews its position only after a quarter of its lifetime', async () => {
  await ask(claimOf('a', { ttl: 100_000 }))
  const waiter = claimOf('a', { queue: true, ttl: 8_000 })
  await ask(waiter)
  const before = written()
  now += 1_249 // a quarter of 5 s, for which a position lasts
  await ask(waiter)
  expect(written()).toBe(before)
  now += 1
  await ask(waiter)
  expect(written()).toBeGreaterThan(before)
  now += 4_999
  expect(await look(store, { name: 'a' })).toHaveLength(2)
  now += 1
  expect(await look(store, { name: 'a' })).toHaveLength(1)
})

test('a waiter whose position lapsed goes to the end of the queue', async () => {
  await ask(claimOf('a', { ttl: 100_000 }))
  const late = claimOf('a', { owner: 'late', queue: true, ttl: 1_000 })
  const other = claimOf('a', { owner: 'other', queue: true, ttl: 50_000 })
  await ask(late)
  await ask(other)
  now += 1_000
  expect(await ask(late)).toMatchObject({ ahead: 1 })
  expect((await look(store, { name: 'a' })).map(record => record.owner).slice(1)).toEqual(['other', 'late'])
})

test('the first waiter has one grace period, then the second may hold, and the third overtakes nobody', async () => {
  const holder = claimOf('a')
  const waiters = [1, 2, 3].map(() => claimOf('a', { queue: true }))
  await ask(holder)
  for (const waiter of waiters) await ask(waiter)
  await store.release(holder, signal)
  const [, second, third] = waiters as [Claim, Claim, Claim]
  expect(await ask(claimOf('a'))).toMatchObject({ held: false, ahead: 3, holder: undefined })
  expect(await ask(second)).toMatchObject({ held: false, ahead: 1, retryAfter: TURN })
  now += TURN
  expect(await ask(third)).toMatchObject({ held: false, ahead: 2 })
  expect(await ask(second)).toMatchObject({ held: true })
})

/** A name that is held, with waiters that note when they are woken: their index, and after how many ms they ask. */
async function crowd(
  size: number,
): Promise<{ holder: Claim; waiters: Claim[]; woken: [index: number, delay: number][] }> {
  const holder = claimOf('a')
  await ask(holder)
  const waiters = Array.from({ length: size }, () => claimOf('a', { queue: true }))
  const woken: [number, number][] = []
  for (const [index, waiter] of waiters.entries()) {
    await ask(waiter)
    await store.watch?.(waiter, (delay = 0) => woken.push([index, delay]), signal)
  }
  return { holder, waiters, woken }
}

test('a release wakes the first waiter, tells the second to come after its grace period, and a grant wakes the next', async () => {
  const { holder, waiters, woken } = await crowd(3)
  await store.release(holder, signal)
  expect(woken).toEqual([
    [0, 0],
    [1, TURN],
  ])
  now += 10
  await ask(waiters[0] as Claim)
  now += 10
  await store.release(waiters[0] as Claim, signal)
  expect(woken.slice(2)).toEqual([
    [1, 0],
    [2, TURN],
  ])
})

test('a break wakes the first waiter, and a withdrawal of the first the next', async () => {
  const { waiters, woken } = await crowd(2)
  expect(await store.break('a', { by: 'somebody' }, signal)).toBeTypeOf('bigint')
  await store.release(waiters[0] as Claim, signal)
  expect(woken).toEqual([
    [0, 0],
    [1, TURN],
    [1, 0],
  ])
})

test('a new second waiter is told when to come if the second leaves', async () => {
  const { holder, waiters, woken } = await crowd(3)
  await store.release(holder, signal)
  now += 30
  await store.release(waiters[1] as Claim, signal)
  expect(woken.at(-1)).toEqual([2, TURN - 30])
})

test('a waiter is woken by a store that did not see the change, and once', async () => {
  const { holder, woken } = await crowd(1)
  const other = sqlite(path, { clock })
  await other.release(holder, signal)
  await expect.poll(() => woken).toEqual([[0, 0]])
  for (let looks = 0; looks < 3; looks += 1) await other.acquire(claimOf(`other ${looks}`), signal)
  expect(woken).toHaveLength(1)
  await other[Symbol.asyncDispose]()
})

test('an aborted watch is not woken', async () => {
  const [holder, waiter] = [claimOf('a'), claimOf('a', { queue: true })]
  await ask(holder)
  await ask(waiter)
  let woken = 0
  const controller = new AbortController()
  await store.watch?.(waiter, () => (woken += 1), controller.signal)
  controller.abort()
  await store.release(holder, signal)
  expect(woken).toBe(0)
})

test('shared leases are in the file with their slots, and survive the store', async () => {
  const [pair, one] = [claimOf('a', { owner: 'pair', limit: 9, units: 2 }), claimOf('a', { owner: 'one', limit: 3 })]
  expect(await ask(pair)).toMatchObject({ slots: [0, 1] })
  expect(await ask(one)).toMatchObject({ slots: [2] })
  await store[Symbol.asyncDispose]()
  store = sqlite(path, { clock })
  expect(await look(store, { name: 'a' })).toMatchObject([
    { owner: 'pair', limit: 9, slots: [0, 1] },
    { owner: 'one', limit: 3, slots: [2] },
  ])
  expect(await ask(claimOf('a', { limit: 9 }))).toMatchObject({ held: false })
  expect(await ask(pair)).toMatchObject({ held: true, slots: [0, 1] })
})

test('five hundred readers hold a name, and a writer follows them', async () => {
  const readers = Array.from({ length: 500 }, () => claimOf('a', { limit: LARGEST_LIMIT }))
  const grants = await Promise.all(readers.map(ask))
  const slots = grants.map(grant => (grant.held ? grant.slots?.[0] : undefined))
  expect(slots).toEqual(readers.map((_, index) => index))
  const writer = claimOf('a', { queue: true })
  expect(await ask(writer)).toMatchObject({ held: false, ahead: 0 })
  expect(await ask(claimOf('a', { limit: LARGEST_LIMIT, queue: true }))).toMatchObject({ held: false, ahead: 1 })
  await Promise.all(readers.map(reader => store.renew(reader, signal)))
  await Promise.all(readers.map(reader => store.release(reader, signal)))
  expect(await ask(writer)).toMatchObject({ held: true, slots: [0] })
})

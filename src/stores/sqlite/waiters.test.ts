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

test('a waiter whose position lapsed joins again with what it asks for now', async () => {
  const [holder, other] = [claimOf('a', { limit: 2 }), claimOf('a', { limit: 2 })]
  for (const claim of [holder, other]) await ask(claim)
  const waiter = claimOf('a', { queue: true, units: 2, limit: 2 })
  await ask(waiter)
  now += 5_000
  const again = { ...waiter, limit: 3, units: 1 }
  await ask(again)
  expect((await look(store, { name: 'a' })).at(-1)).toMatchObject({ state: 'waiting', limit: 3 })
  await store.release(holder, signal)
  expect(await ask(again)).toMatchObject({ held: true, slots: [0] })
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

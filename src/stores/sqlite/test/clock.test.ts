/** The wall clock is set back while a file is in use. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { claimOf, hold, signal } from '../../../../test/support.ts'
import type { Store } from '../../../contract/store.ts'
import { systemClock } from '../../../contract/time.ts'
import { sqlite } from '../index.ts'

let path: string
let store: Store
let wall: number

beforeEach(() => {
  path = join(mkdtempSync(join(tmpdir(), 'holdfast-sqlite-')), 'leases.db')
  wall = Date.UTC(2025, 0)
  store = sqlite(path, { clock: { ...systemClock(), wall: () => wall } })
})
afterEach(async () => {
  await store[Symbol.asyncDispose]()
  rmSync(join(path, '..'), { recursive: true })
})

test('a wall clock that is set back extends a lease to at most one ttl after this is noticed', async () => {
  await hold(store, claimOf('a', { ttl: 1_000 }))
  wall -= 3_600_000
  const busy = await store.acquire(claimOf('a'), signal)
  expect(busy).toMatchObject({ held: false, retryAfter: 1_000 })
  wall += 999
  expect(await store.acquire(claimOf('a'), signal)).toMatchObject({ held: false, retryAfter: 1 })
  wall += 1
  expect(await store.acquire(claimOf('a'), signal)).toMatchObject({ held: true })
})

test('shared leases from before the wall clock was set back end together with those of their ttl', async () => {
  await hold(store, claimOf('a', { ttl: 1_000, limit: 2 }))
  const renewed = claimOf('a', { ttl: 1_000, limit: 2 })
  await hold(store, renewed)
  wall -= 3_600_000
  expect(await store.renew({ ...renewed, ttl: 3_000 }, signal)).toMatchObject({ slots: [1] })
  wall += 999
  expect(await store.acquire(claimOf('a', { limit: 2 }), signal)).toMatchObject({ held: false })
  wall += 1
  expect(await store.acquire(claimOf('a', { limit: 2 }), signal)).toMatchObject({ held: true, slots: [0] })
  expect(await store.acquire(claimOf('a', { limit: 2 }), signal)).toMatchObject({ held: false })
})

test('a name released before the wall clock was set back is free at once for the first waiter', async () => {
  const holder = claimOf('a')
  const waiter = claimOf('a', { queue: true })
  await hold(store, holder)
  await store.acquire(waiter, signal)
  await store.release(holder, signal)
  wall -= 3_600_000
  expect(await store.acquire(waiter, signal)).toMatchObject({ held: true })
})

test('waiters that died before the wall clock was set back lapse as all others do', async () => {
  const holder = claimOf('a', { ttl: 60_000 })
  await hold(store, holder)
  for (const ttl of [500, 2_000]) await store.acquire(claimOf('a', { queue: true, ttl }), signal)
  const waiter = claimOf('a', { queue: true, ttl: 4_000 })
  await store.acquire(waiter, signal)
  wall -= 3_600_000
  expect(await store.acquire(waiter, signal)).toMatchObject({ ahead: 2 })
  wall += 2_000
  expect(await store.acquire(waiter, signal)).toMatchObject({ ahead: 0 })
  await store.release(holder, signal)
  await hold(store, waiter)
})

test('tombstones from before the wall clock was set back do not pile up', async () => {
  const withdrawn = claimOf('a')
  await store.release(withdrawn, signal)
  for (let turn = 0; turn < 9; turn += 1) await store.release(claimOf('a'), signal)
  wall -= 3_600_000
  for (let turn = 0; turn < 10; turn += 1) await store.release(claimOf('a'), signal)
  expect(await store.acquire(withdrawn, signal)).toMatchObject({ held: false })
  for (let turn = 0; turn < 60; turn += 1) {
    wall += 5_000
    await store.release(claimOf('a'), signal)
  }
  const database = new DatabaseSync(path)
  const left = database.prepare('select count(*) as n from tombstone').get()
  expect(Number(left?.n)).toBeLessThanOrEqual(3)
  database.close()
})

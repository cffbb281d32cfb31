import { setTimeout } from 'node:timers/promises'
import { Redis } from 'ioredis'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { startProxy } from '../../../../lab/servers/proxy.ts'
import { type RedisServer, startRedis } from '../../../../lab/servers/redis.ts'
import { gateName, slotName } from '../../../contract/reserved.ts'
import type { Claim, NoneGranted, Selection, SomeGranted, Store } from '../../../contract/store.ts'
import { createLocks } from '../../../index.ts'
import { acquire, claimOf, hold, signal, storeOf } from './support.ts'

const TTL = 60_000

let server: RedisServer
beforeAll(async () => {
  server = await startRedis()
})
afterAll(() => server.stop())

const open = (port: number): Store => storeOf(new Redis({ port, lazyConnect: true }))

/** One of the first slots of `name`, with a gate that queues. */
function selectionOf(name: string, slots: number): Selection {
  const gate = claimOf(gateName(name), { ttl: TTL, queue: true })
  const claims = Array.from({ length: slots }, (_, slot) => claimOf(slotName(name, slot), { id: gate.id, ttl: TTL }))
  return { claims, want: 1, gate }
}

function acquireSome(store: Store, selection: Selection, until = signal): Promise<SomeGranted | NoneGranted> {
  return store.acquireSome?.(selection, until) ?? expect.fail('the store has no acquireSome')
}

/** Counts the wakes of a claim that waits. */
async function watch(store: Store, claim: Claim): Promise<{ wakes: number }> {
  const seen = { wakes: 0 }
  const wake = (): void => {
    seen.wakes += 1
  }
  await store.watch?.(claim, wake, signal)
  return seen
}

test('without memory it renews and releases permits, and grants all permits or none', async () => {
  await using full = await startRedis()
  const locks = createLocks(open(full.port), { ttl: TTL })
  const held = locks.semaphore('held', { limit: 3 })
  const other = locks.semaphore('other', { limit: 3 })
  const permit = await held.acquire({ permits: 2 })
  await full.call('CONFIG', 'SET', 'maxmemory', '1')
  const refusal = { code: 'STORE_UNAVAILABLE', retryable: true }
  await expect(other.tryAcquire()).rejects.toMatchObject(refusal)
  await expect(other.tryAcquire({ permits: 2 })).rejects.toMatchObject(refusal)
  await expect(held.tryAcquire({ permits: 1 })).rejects.toMatchObject(refusal)
  expect(await permit.extend()).toBeGreaterThan(0)
  expect(await permit.release()).toBe('released')
  const waiting = other.acquire({ permits: 3, wait: TTL })
  await full.call('CONFIG', 'SET', 'maxmemory', '0')
  expect((await waiting).slots).toEqual([0, 1, 2])
  for (const _ of [1, 2, 3]) expect(await held.tryAcquire()).toBeDefined()
  await locks.close()
})

test('the error of a slot that is no lease names its key', async () => {
  await server.call('SET', 'holdfast:{:foreign}', '1 something')
  await using store = open(server.port)
  const failed = acquireSome(store, selectionOf('foreign', 2))
  await expect(failed).rejects.toMatchObject({
    code: 'STORE_UNAVAILABLE',
    message: expect.stringContaining('holdfast:{:foreign}'),
  })
})

test('S4: after a lost answer it wakes those who wait for any name of the selection', async () => {
  await using proxy = await startProxy(server)
  await using near = open(server.port)
  await using store = open(proxy.port)
  const selection = selectionOf('lost', 2)
  const held = selection.claims.map(({ name }) => claimOf(name, { ttl: TTL }))
  for (const claim of held) await hold(near, claim)
  expect(await acquireSome(store, selection)).toMatchObject({ held: false, isGated: false })
  const behind = claimOf(slotName('lost', 1), { ttl: TTL, queue: true })
  expect(await acquire(store, behind)).toMatchObject({ held: false, ahead: 1 })
  const waiter = await watch(store, behind)
  for (const claim of held) await near.release(claim, signal)
  expect(waiter.wakes).toBe(0)
  const cut = proxy.cutAfterRequest('acquireSome')
  await expect(acquireSome(store, selection)).rejects.toMatchObject({ code: 'OUTCOME_UNKNOWN' })
  expect(waiter.wakes).toBe(1)
  await cut
})

test('an answer that comes after the call has ended takes no wake from others', async () => {
  await using proxy = await startProxy(server)
  await using near = open(server.port)
  await using store = open(proxy.port)
  const selection = selectionOf('late', 1)
  const held = claimOf('late', { ttl: TTL })
  await hold(store, held)
  const call = new AbortController()
  const before = proxy.down.bytes
  proxy.down.hold()
  const asked = acquireSome(store, selection, call.signal)
  await expect.poll(() => proxy.down.bytes).toBeGreaterThan(before)
  call.abort()
  const withdrawn = [...selection.claims, selection.gate].map(claim => store.release(claim, signal))
  proxy.down.pass()
  await asked
  await Promise.all(withdrawn)

  const [gated, waiting] = [selectionOf('late', 1).gate, selectionOf('late', 1).gate]
  await hold(near, gated)
  expect(await acquire(store, waiting)).toMatchObject({ held: false })
  const waiter = await watch(store, waiting)
  const released = store.release(held, signal)
  expect(waiter.wakes).toBe(1)
  expect(await released).toBe('released')
})

test('the late request of a call that has ended wakes nobody', async () => {
  await using near = open(server.port)
  await using store = open(server.port)
  await hold(near, claimOf(gateName('ended'), { ttl: TTL }))
  const { gate } = selectionOf('ended', 2)
  expect(await acquire(store, gate)).toMatchObject({ held: false })
  const waiter = await watch(store, gate)
  const ended = selectionOf('ended', 2)
  expect(await near.release(ended.gate, signal)).toBe('gone')
  expect(await acquireSome(store, ended)).toMatchObject({ held: false, wait: { retryAfter: 5_000 } })
  await setTimeout(50)
  expect(waiter.wakes).toBe(0)
})

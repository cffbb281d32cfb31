/** Releases, and the waiters behind in the queue. */
import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { startProxy } from '../../../../lab/servers/proxy.ts'
import { until } from '../../../../lab/servers/until.ts'
import { startZooKeeper, type ZooKeeperServer } from '../../../../lab/servers/zookeeper.ts'
import type { Claim, Store } from '../../../contract/store.ts'
import { claimOf, failureOf, hold, look, nodesOf, signal, storeOf } from './support.ts'

let server: ZooKeeperServer
let store: Store
let other: Store

beforeAll(async () => {
  server = await startZooKeeper()
})
afterAll(() => server.stop())
beforeEach(() => {
  const stores = [storeOf(server), storeOf(server)] as const
  ;[store, other] = stores
  return async () => void (await Promise.all(stores.map(each => each[Symbol.asyncDispose]())))
})

interface Waiter {
  readonly claim: Claim
  readonly wakes: number
}

async function waiter(of: Store, name: string): Promise<Waiter> {
  const claim = claimOf(name, { queue: true })
  expect(await of.acquire(claim, signal)).toMatchObject({ held: false, listens: true })
  const seen = { claim, wakes: 0 }
  // The second waiter is also told to ask after the grace period of the first.
  const wake = (delay = 0): void => {
    if (delay === 0) seen.wakes += 1
  }
  await of.watch?.(claim, wake, signal)
  return seen
}

function woken(waiter: Waiter): Promise<unknown> {
  return until(`the waiter for ${waiter.claim.name} is woken`, () => waiter.wakes > 0)
}

test('a waiter follows the one before it that begins to hold, and is woken when that lease is broken', async () => {
  const holder = claimOf('broken')
  await hold(store, holder)
  const [first, second] = [await waiter(store, holder.name), await waiter(store, holder.name)]
  await store.release(holder, signal)
  const { token } = await hold(store, first.claim)
  expect(second.wakes).toBe(0)
  expect(await other.break(holder.name, { by: 'test' }, signal)).toBeGreaterThan(token)
  await woken(second)
  await hold(store, second.claim)
  expect(await store.renew(first.claim, signal)).toBeUndefined()
})

test('a waiter of another process is not woken before the lease of the one before it ends', async () => {
  const holder = claimOf('shared')
  await hold(store, holder)
  const [first, second] = [await waiter(store, holder.name), await waiter(other, holder.name)]
  await store.release(holder, signal)
  await hold(store, first.claim)
  // Its next watch is set when another request of its session has been answered.
  await hold(other, claimOf('unrelated'))
  expect(second.wakes).toBe(0)
  await store.release(first.claim, signal)
  await woken(second)
  await hold(other, second.claim)
})

test('a waiter that is withdrawn together with the holder leaves nothing behind', async () => {
  for (const order of ['holder first', 'waiter first']) {
    const holder = claimOf(`withdrawn, ${order}`)
    await hold(store, holder)
    const { claim } = await waiter(store, holder.name)
    const both = order === 'holder first' ? [holder, claim] : [claim, holder]
    expect(await Promise.all(both.map(each => store.release(each, signal)))).toEqual(['released', 'released'])
    await until('nothing is left', async () => (await nodesOf(server, encodeURIComponent(holder.name))).length === 0)
    expect(await store.release(claim, signal)).toBe('gone')
  }
})

test('a waiter that was withdrawn by another process is granted nothing, and the release counts', async () => {
  const holder = claimOf('withdrawn elsewhere')
  await hold(store, holder)
  const first = await waiter(store, holder.name)
  const second = await waiter(store, holder.name)
  expect(await other.release(first.claim, signal)).toBe('released')
  await woken(second)
  expect(await store.release(holder, signal)).toBe('released')
  await hold(store, second.claim)
  expect(await store.acquire(first.claim, signal)).toMatchObject({ held: false })
})

test('a waiter that was passed and is withdrawn by another process is released', async () => {
  const holder = claimOf('passed and withdrawn')
  await hold(store, holder)
  const [first, second] = [await waiter(store, holder.name), await waiter(store, holder.name)]
  await store.release(holder, signal)
  await until('the first is passed', async () => (await store.acquire(second.claim, signal)).held)
  expect(await other.release(first.claim, signal)).toBe('released')
  expect(await other.release(first.claim, signal)).toBe('gone')
})

test('a waiter that has lost its position and joins again is granted nothing before those ahead of it', async () => {
  const holder = claimOf('joins again')
  await hold(store, holder)
  const first = await waiter(store, holder.name)
  const others = [await waiter(other, holder.name), await waiter(other, holder.name)] as const
  expect(await other.release(first.claim, signal)).toBe('released')
  await until('it may join again', async () =>
    (await nodesOf(server, encodeURIComponent(holder.name))).every(node => !node.startsWith('x')),
  )
  expect(await store.acquire(first.claim, signal)).toMatchObject({ held: false, ahead: 2 })
  expect(await store.release(holder, signal)).toBe('released')
  expect(await store.acquire(first.claim, signal)).toMatchObject({ held: false })
  await hold(other, others[0].claim)
})

test('a waiter takes the name over the connection that it has, before it attaches its session again', async () => {
  await using proxy = await startProxy(server)
  await using far = storeOf(proxy)
  const holder = claimOf('attached')
  const claim = claimOf(holder.name, { queue: true, ttl: 3_000, owner: 'far' })
  await hold(store, holder)
  await far.acquire(claim, signal)
  await sleep(2_500) // half of the session: not enough for a grant
  await store.release(holder, signal)
  await proxy.refuse()
  expect(await failureOf(far.acquire(claim, signal))).toMatchObject({ code: 'STORE_UNAVAILABLE' })
  expect(await look(store, { name: holder.name })).toMatchObject([{ state: 'held', owner: 'far' }])
  await proxy.accept()
  expect(await hold(far, claim)).toMatchObject({ ttl: 3_000 })
})

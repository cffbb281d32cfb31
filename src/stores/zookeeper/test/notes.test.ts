import { afterAll, afterEach, beforeAll, expect, test, vi } from 'vitest'
import { startZooKeeper, type ZooKeeperServer } from '../../../../lab/servers/zookeeper.ts'
import { look } from '../../../../test/support.ts'
import type { Store } from '../../../contract/store.ts'
import { setData } from '../protocol.ts'
import { claimOf, failureOf, hold, holdBack, nodesOf, signal, storeOf, transactions } from './support.ts'

let server: ZooKeeperServer

beforeAll(async () => {
  server = await startZooKeeper()
})
afterAll(() => server.stop())
afterEach(() => vi.restoreAllMocks())

async function noteOf(store: Store, name: string): Promise<string | undefined> {
  const [record] = await look(store, { name })
  return record?.note
}

const writes = setData('', '', 0)

test('a note changes neither the node of a claim, nor its other fields, nor who may renew and release it', async () => {
  await using store = storeOf(server)
  await using other = storeOf(server)
  const claim = claimOf('same', { note: 'old', owner: 'me' })
  const { token } = await hold(store, claim)
  const before = await nodesOf(server, 'same')
  for (const each of [store, other]) {
    expect(await each.annotate({ ...claim, note: 'new', owner: 'x', ttl: 20_000 }, signal)).toBe(true)
    expect(await nodesOf(server, 'same')).toEqual(before)
    const [record] = await Array.fromAsync(other.inspect({ name: 'same' }, signal))
    expect(record).toEqual({ name: 'same', state: 'held', owner: 'me', note: 'new', token, remaining: 10_000 })
  }
  expect((await store.renew(claim, signal))?.token).toBe(token)
  expect(await store.release(claim, signal)).toBe('released')
})

test('a lease that moves to the session of another client, or of another ttl, keeps its note', async () => {
  await using one = storeOf(server)
  await using two = storeOf(server)
  const claim = claimOf('moves', { note: 'old' })
  await hold(one, claim)
  await one.annotate({ ...claim, note: 'new' }, signal)
  for (const [store, ttl] of [
    [two, 10_000],
    [one, 20_000],
    [two, 4_000],
  ] as const) {
    expect(await store.renew({ ...claim, ttl }, signal)).toBeDefined()
    expect(await noteOf(one, 'moves')).toBe('new')
  }
  expect((await hold(one, claim)).held).toBe(true)
  expect(await noteOf(one, 'moves')).toBe('new')
})

test('a stale note does not replace a newer one of the node', async () => {
  await using store = storeOf(server)
  await using other = storeOf(server)
  const claim = claimOf('late')
  await hold(store, claim)
  const controller = new AbortController()
  const held = holdBack(writes)
  const late = failureOf(store.annotate({ ...claim, note: 'late' }, controller.signal))
  const pass = await held
  expect(await other.annotate({ ...claim, note: 'newer' }, signal)).toBe(true)
  controller.abort(new Error('not in time'))
  pass()
  expect(await late).toMatchObject({ message: 'not in time' })
  expect(await noteOf(other, 'late')).toBe('newer')
})

test('a note follows a lease that has just moved to another session', async () => {
  await using store = storeOf(server)
  const claim = claimOf('follows')
  await hold(store, claim)
  const held = holdBack(writes)
  const late = store.annotate({ ...claim, note: 'new' }, signal)
  const pass = await held
  expect(await store.renew({ ...claim, ttl: 20_000 }, signal)).toBeDefined()
  pass()
  expect(await late).toBe(true)
  expect(await noteOf(store, 'follows')).toBe('new')
})

test('a note that arrives when another claim holds is not written', async () => {
  await using store = storeOf(server)
  const claim = claimOf('passed-on')
  await hold(store, claim)
  const held = holdBack(writes)
  const late = store.annotate({ ...claim, note: 'late' }, signal)
  const pass = await held
  await store.release(claim, signal)
  await hold(store, claimOf('passed-on', { note: 'next' }))
  pass()
  expect(await late).toBe(false)
  expect(await noteOf(store, 'passed-on')).toBe('next')
})

test('a lease that moves while its note is changed keeps the new note', async () => {
  await using store = storeOf(server)
  await using other = storeOf(server)
  const claim = claimOf('taken-along', { note: 'old' })
  const { token } = await hold(store, claim)
  const held = holdBack(transactions)
  const moved = store.renew({ ...claim, ttl: 20_000 }, signal)
  const pass = await held
  expect(await other.annotate({ ...claim, note: 'new' }, signal)).toBe(true)
  pass()
  expect((await moved)?.token).toBe(token)
  expect(await noteOf(other, 'taken-along')).toBe('new')
})

test('a note wakes no waiter in ZooKeeper, and the release after it does', async () => {
  await using holders = storeOf(server)
  await using waiters = storeOf(server)
  const [holder, waiter, neighbour] = [claimOf('quiet'), claimOf('quiet', { queue: true }), claimOf('neighbour')]
  await hold(holders, holder)
  await hold(waiters, neighbour)
  expect(await waiters.acquire(waiter, signal)).toMatchObject({ held: false, listens: true })
  const controller = new AbortController()
  const released = Promise.withResolvers<void>()
  let wakes = 0
  const wake = (): void => {
    wakes += 1
    released.resolve()
  }
  await waiters.watch?.(waiter, wake, controller.signal)
  for (const note of ['1', '2']) expect(await holders.annotate({ ...holder, note }, signal)).toBe(true)
  await waiters.renew(neighbour, signal) // a transaction in the session of the waiter, which first delivers all earlier events
  expect(wakes).toBe(0)
  await holders.release(holder, signal)
  await released.promise
  expect(await waiters.acquire(waiter, signal)).toMatchObject({ held: true })
  controller.abort()
})

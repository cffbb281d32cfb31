/** A release grants the name to the next waiter, if that belongs to the same session. */
import { afterAll, beforeAll, beforeEach, expect, onTestFinished, test, vi } from 'vitest'
import { startProxy } from '../../../../lab/servers/proxy.ts'
import { until } from '../../../../lab/servers/until.ts'
import { startZooKeeper, type ZooKeeperServer } from '../../../../lab/servers/zookeeper.ts'
import type { Claim, Store } from '../../../contract/store.ts'
import { systemClock } from '../../../contract/time.ts'
import { Connection } from '../connection.ts'
import { Disconnected } from '../failure.ts'
import { multi } from '../protocol.ts'
import { ZooKeeperStore } from '../store.ts'
import { claimOf, connectionTo, hold, nodesOf, setAcl, settingsWith, signal, storeOf } from './support.ts'

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
  stop(): void
}

async function waiter(of: Store, name: string, parameters: Partial<Claim> = {}): Promise<Waiter> {
  const claim = claimOf(name, { queue: true, handoff: true, ...parameters })
  expect(await of.acquire(claim, signal)).toMatchObject({ held: false, listens: true })
  const end = new AbortController()
  const seen = { claim, wakes: 0, stop: () => end.abort() }
  // The second waiter is also told to ask after the grace period of the first.
  const wake = (delay = 0): void => {
    if (delay === 0) seen.wakes += 1
  }
  await of.watch?.(claim, wake, end.signal)
  return seen
}

function woken(waiter: Waiter): Promise<unknown> {
  return until(`the waiter for ${waiter.claim.name} is woken`, () => waiter.wakes > 0)
}

/** Counts the requests of all stores from now on. */
function counting(): { readonly requests: number } {
  const send = vi.spyOn(Connection.prototype, 'send')
  onTestFinished(() => send.mockRestore())
  return {
    get requests() {
      return send.mock.calls.length
    },
  }
}

test('a release, the grant to the next waiter and the watch of the one behind are two requests', async () => {
  // Without a request the grant is answered within 100 ms only, so no time passes.
  const clock = systemClock()
  const start = clock.now()
  await using store = new ZooKeeperStore(settingsWith(server, { ...clock, now: () => start }), 0)
  const holder = claimOf('handed on')
  const { token } = await hold(store, holder)
  const [first, second] = [await waiter(store, holder.name), await waiter(store, holder.name)]
  const count = counting()
  expect(await store.release(holder, signal)).toBe('released')
  expect(first.wakes).toBe(1)
  const granted = await hold(store, first.claim)
  expect(granted.token).toBeGreaterThan(token)
  expect(granted.ttl).toBeGreaterThanOrEqual(first.claim.ttl)
  expect(count.requests).toBe(2)
  expect(await store.release(first.claim, signal)).toBe('released')
  expect((await hold(store, second.claim)).token).toBeGreaterThan(granted.token)
  expect(count.requests).toBe(3)
  expect(await store.renew(second.claim, signal)).toMatchObject({ held: true })
  expect(await store.release(first.claim, signal)).toBe('gone')
})

test('a claim that was handed the name is not granted it by a store that is being closed', async () => {
  const clock = systemClock()
  const start = clock.now()
  const store = new ZooKeeperStore(settingsWith(server, { ...clock, now: () => start }), 0)
  const holder = claimOf('closed')
  await hold(store, holder)
  const next = await waiter(store, holder.name)
  await store.release(holder, signal)
  await woken(next)
  expect(await nodesOf(server, holder.name)).toEqual([expect.stringMatching(/^h/)])
  const asked = store.acquire(next.claim, signal)
  const closed = store[Symbol.asyncDispose]()
  await expect(asked).rejects.toMatchObject({ code: 'CLOSED' })
  await closed
})

test('the waiter behind a lease that was handed on is woken when that is broken', async () => {
  const holder = claimOf('broken')
  await hold(store, holder)
  const [first, second] = [await waiter(store, holder.name), await waiter(store, holder.name)]
  await store.release(holder, signal)
  const { token } = await hold(store, first.claim)
  expect(second.wakes).toBe(0)
  expect(await other.break(holder.name, 'test', signal)).toBeGreaterThan(token)
  await woken(second)
  await hold(store, second.claim)
  expect(await store.renew(first.claim, signal)).toBeUndefined()
})

test('a waiter of another process behind a lease that was handed on is not woken before that ends', async () => {
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

test.each<[string, (name: string) => Promise<Waiter>]>([
  ['of another session', name => waiter(store, name, { ttl: 30_000 / 2 })],
  ['that may not be handed the name', name => waiter(store, name, { handoff: false })],
  [
    'that is not watched any more',
    async name => {
      const seen = await waiter(store, name)
      seen.stop()
      return seen
    },
  ],
])('a waiter %s is granted nothing by a release, and may ask', async (what, join) => {
  const holder = claimOf(`not ${what}`)
  const { token } = await hold(store, holder)
  const { claim } = await join(holder.name)
  expect(await store.release(holder, signal)).toBe('released')
  const [node = ''] = await nodesOf(server, encodeURIComponent(holder.name))
  expect(node).toMatch(/^w/)
  expect((await hold(store, claim)).token).toBeGreaterThan(token)
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

test('a waiter that is withdrawn while the name is handed to it leaves nothing behind', async () => {
  const holder = claimOf('withdrawn meanwhile')
  await hold(store, holder)
  const { claim } = await waiter(store, holder.name)
  const { send } = Connection.prototype
  let withdrawal: Promise<string> | undefined
  const spy = vi.spyOn(Connection.prototype, 'send').mockImplementation(function (this: Connection, request) {
    const answer = send.call(this, request)
    if (request.op === multi([]).op) withdrawal ??= store.release(claim, signal)
    return answer
  })
  onTestFinished(() => spy.mockRestore())
  expect(await store.release(holder, signal)).toBe('released')
  expect(await withdrawal).toBe('released')
  await until('nothing is left', async () => (await nodesOf(server, encodeURIComponent(holder.name))).length === 0)
  expect(await store.release(claim, signal)).toBe('gone')
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

test('if the answer to a handoff is lost, the waiter asks and has the lease, and the release is repeated', async () => {
  await using proxy = await startProxy(server)
  await using store = storeOf(proxy)
  for (let round = 0; round < 5; round += 1) {
    const holder = claimOf(`lost-${round}`)
    const { token } = await hold(store, holder)
    const { claim } = await waiter(store, holder.name)
    const cut = proxy.cutAfterRequest(claim.id)
    await expect(store.release(holder, signal)).rejects.toMatchObject({ code: 'OUTCOME_UNKNOWN' })
    await cut
    const granted = await hold(store, claim)
    expect(granted.token).toBeGreaterThan(token)
    expect((await nodesOf(server, holder.name)).filter(node => node.startsWith('h'))).toHaveLength(1)
    expect(await store.release(holder, signal)).toBe('gone')
    expect((await hold(store, claim)).token).toBe(granted.token)
    expect(await store.release(claim, signal)).toBe('released')
  }
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

test('a release counts if the server refuses to grant the name to the waiter', async () => {
  const holder = claimOf('refused')
  await hold(store, holder)
  const { claim } = await waiter(store, holder.name)
  const operator = await connectionTo(server)
  const [readDeleteAdmin, all] = [25, 31]
  await operator.send(setAcl(`/holdfast/${holder.name}`, 'world', readDeleteAdmin))
  expect(await store.release(holder, signal)).toBe('released')
  await operator.send(setAcl(`/holdfast/${holder.name}`, 'world', all))
  await hold(store, claim)
  operator.end(new Disconnected('it is done'))
})

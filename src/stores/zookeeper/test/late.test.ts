/** Requests that are carried out, or answered, after they were given up. */
import { afterAll, afterEach, beforeAll, expect, test, vi } from 'vitest'
import { startProxy, type TcpProxy } from '../../../../lab/servers/proxy.ts'
import { until } from '../../../../lab/servers/until.ts'
import { startZooKeeper, type ZooKeeperServer } from '../../../../lab/servers/zookeeper.ts'
import type { Claim, Store } from '../../../contract/store.ts'
import { systemClock } from '../../../contract/time.ts'
import { Group } from '../group.ts'
import { create, createContainer, remove } from '../protocol.ts'
import { ZooKeeperStore } from '../store.ts'
import {
  claimOf,
  connectionTo,
  failureOf,
  hold,
  holdBack,
  look,
  nodesOf,
  settingsWith,
  signal,
  storeOf,
  transactions,
} from './support.ts'

let server: ZooKeeperServer

beforeAll(async () => {
  server = await startZooKeeper()
})
afterAll(() => server.stop())
afterEach(() => vi.restoreAllMocks())

/** A store whose clock can be made to step forward. */
function sleeping(): { store: Store; sleep(ms: number): void } {
  const clock = systemClock()
  let slept = 0
  return {
    store: new ZooKeeperStore(settingsWith(server, { ...clock, now: () => clock.now() + slept }), 0),
    sleep(ms) {
      slept += ms
    },
  }
}

/** Another claim of this ttl asks, so its session looks for the nodes of abandoned claims, or deletes them. */
async function sweep(store: Store, ttl: number): Promise<void> {
  const claim = claimOf(`sweep-${ttl}`, { ttl })
  await hold(store, claim)
  for (let turn = 0; turn < 3; turn += 1) await store.renew(claim, signal) // what the sweep asks is answered before
  await store.release(claim, signal)
}

const again: Record<string, (store: Store, claim: Claim) => Promise<unknown>> = {
  renew: (store, claim) => store.renew(claim, signal),
  acquire: (store, claim) => store.acquire(claim, signal),
}

test.each([
  ['renew', 2_000],
  ['renew', 20_000],
  ['acquire', 2_000],
])('a renewal that was given up moves no lease to another session after a later %s (%i ms)', async (how, ttl) => {
  await using store = storeOf(server)
  const claim = claimOf(`moved-${how}-${ttl}`)
  const { token } = await hold(store, claim)
  const controller = new AbortController()
  const held = holdBack(transactions)
  const late = failureOf(store.renew({ ...claim, ttl }, controller.signal))
  const pass = await held
  controller.abort()
  expect(await again[how]?.(store, claim)).toMatchObject({ held: true, token, ttl: 10_000 })
  pass()
  await late
  expect(await look(store, { name: claim.name })).toMatchObject([{ state: 'held', token, remaining: 10_000 }])
  const nodes = await nodesOf(server, claim.name)
  expect(nodes).toHaveLength(1)
  // A lease whose renewals are answered keeps its node.
  expect(await store.renew(claim, signal)).toMatchObject({ token })
  expect(await nodesOf(server, claim.name)).toEqual(nodes)
})

test('a lease keeps its node once a renewal that was given up is refused', async () => {
  await using store = storeOf(server)
  const claim = claimOf('refused')
  await hold(store, claim)
  const nodes = await nodesOf(server, claim.name)
  const controller = new AbortController()
  const held = holdBack(transactions)
  const late = failureOf(store.renew({ ...claim, ttl: 2_000 }, controller.signal))
  const pass = await held
  controller.abort()
  expect(await store.annotate({ ...claim, note: 'new' }, signal)).toBe(true)
  pass()
  await late
  expect(await store.renew(claim, signal)).toMatchObject({ ttl: 10_000 })
  expect(await nodesOf(server, claim.name)).toEqual(nodes)
})

test('a lease keeps its node once the session of a renewal that was lost is attached again', async () => {
  await using proxy = await startProxy(server)
  await using store = storeOf(proxy)
  const claim = claimOf('attached')
  await hold(store, claim)
  const nodes = await nodesOf(server, claim.name)
  const held = holdBack(transactions, 'lost')
  expect(await failureOf(store.renew({ ...claim, ttl: 2_000 }, signal))).toMatchObject({ code: 'OUTCOME_UNKNOWN' })
  await held
  proxy.reset()
  await until('it is attached', () => hold(store, claimOf('any', { ttl: 2_000 })).catch(() => undefined))
  await until('it is renewed', () => store.renew(claim, signal).catch(() => undefined))
  expect(await nodesOf(server, claim.name)).toEqual(nodes)
})

test.each([
  ['moved', 10_000],
  ['checked', 2_000],
])('a renewal that %s the lease, and is answered after a later one, does not forget where it is', async (how, ttl) => {
  await using store = storeOf(server)
  const claim = claimOf(how)
  const { token } = await hold(store, { ...claim, ttl })
  const controller = new AbortController()
  const held = holdBack(transactions, 'answer')
  const late = failureOf(store.renew({ ...claim, ttl: 2_000 }, controller.signal))
  const pass = await held
  controller.abort()
  expect(await store.renew(claim, signal)).toMatchObject({ token, ttl: 10_000 })
  pass()
  await late
  const nodes = await nodesOf(server, claim.name)
  expect(await store.renew(claim, signal)).toMatchObject({ token })
  expect(await nodesOf(server, claim.name)).toEqual(nodes)
})

test('a claim that holds by its first node is not put into the queue by a request whose connection was lost', async () => {
  await using store = storeOf(server)
  await using others = storeOf(server)
  const [holder, claim] = [claimOf('queued'), claimOf('queued', { queue: true })]
  await hold(others, holder)
  const held = holdBack(transactions, 'lost')
  expect(await failureOf(store.acquire(claim, signal))).toMatchObject({ code: 'OUTCOME_UNKNOWN' })
  const pass = await held
  await others.release(holder, signal)
  const { token } = await hold(store, claim)
  await pass()
  expect(await look(others, { name: claim.name })).toMatchObject([{ state: 'held', token }])
  expect(await store.renew(claim, signal)).toMatchObject({ token })
})

test.each([9_000, 20_000])('a renewal for %i ms whose answer was lost does not end the lease early', async ttl => {
  const { store, sleep } = sleeping()
  const claim = claimOf(`unanswered-${ttl}`)
  const { token } = await hold(store, claim)
  const held = holdBack(transactions, 'lost')
  expect(await failureOf(store.renew({ ...claim, ttl }, signal))).toMatchObject({ code: 'OUTCOME_UNKNOWN' })
  await (await held)()
  for (const time of [5_100, 2_500]) {
    sleep(time)
    await sweep(store, ttl)
  }
  // If it is not renewed, its holder counts on it until its former end, or the new one if that is sooner.
  expect(await look(store, { name: claim.name })).toMatchObject([{ token }])
  for (const time of [ttl, 2_500, 2_500]) {
    sleep(time)
    await sweep(store, ttl)
  }
  expect(await nodesOf(server, claim.name)).toEqual([])
  await store[Symbol.asyncDispose]()
})

test.each([
  ['', false],
  [' and may still move', true],
])('a copy of the acquire that was granted shortens no lease that was extended%s', async (which, mayMove) => {
  const { store, sleep } = sleeping()
  const [claim, ttl] = [claimOf(`copied${which}`, { ttl: 2_000 }), 20_000]
  const { token } = await hold(store, claim)
  await store.renew({ ...claim, ttl }, signal)
  if (mayMove) {
    const held = holdBack(transactions, 'lost')
    expect(await failureOf(store.renew(claim, signal))).toMatchObject({ code: 'OUTCOME_UNKNOWN' })
    await held
  }
  expect(await hold(store, claim)).toMatchObject({ token })
  sleep(10_000)
  await sweep(store, ttl)
  expect(await store.renew({ ...claim, ttl }, signal)).toMatchObject({ token })
  await store[Symbol.asyncDispose]()
})

/** What happens between a renewal whose answer was lost and the end of the store. `carryOut` carries it out. */
const meanwhile: Record<string, (claim: Claim, store: Store, proxy: TcpProxy, carryOut: () => unknown) => unknown> = {
  '': (_claim, _store, _proxy, carryOut) => carryOut(),
  ', also after its session was attached again': async ({ ttl }, store, proxy, carryOut) => {
    await carryOut()
    proxy.reset()
    const other = claimOf('other', { ttl })
    await until('it is attached', () => hold(store, other).catch(() => undefined))
    await store.release(other, signal)
  },
  ', also after that made the next renewal fail': async (claim, store, _proxy, carryOut) => {
    vi.restoreAllMocks()
    const moving = holdBack(transactions)
    void failureOf(store.renew(claim, signal))
    const pass = await moving
    await carryOut()
    vi.restoreAllMocks()
    const lookingAgain = holdBack(transactions)
    pass()
    await lookingAgain
  },
}

test.each(Object.keys(meanwhile))(
  'a store that is closed keeps a lease that was moved without an answer%s',
  async how => {
    await using proxy = await startProxy(server)
    const store = storeOf(proxy)
    const claim = claimOf(`closed-${how.length}`)
    await hold(store, claim)
    const longer = { ...claim, ttl: 20_000 }
    const held = holdBack(transactions, 'lost')
    expect(await failureOf(store.renew(longer, signal))).toMatchObject({ code: 'OUTCOME_UNKNOWN' })
    await meanwhile[how]?.(longer, store, proxy, await held)
    await store[Symbol.asyncDispose]()
    expect(await nodesOf(server, claim.name)).toHaveLength(1)
  },
)

test('an acquire that is answered after its withdrawal has failed keeps no node', async () => {
  const { store, sleep } = sleeping()
  const claim = claimOf('withdrawn')
  const creation = create('', '', [], 'ephemeral')
  const controller = new AbortController()
  const acquiring = holdBack(creation, 'answer')
  const late = Promise.allSettled([store.acquire(claim, controller.signal)])
  const pass = await acquiring
  controller.abort()
  vi.restoreAllMocks()
  const withdrawing = holdBack(creation, 'lost')
  expect(await failureOf(store.release(claim, signal))).toMatchObject({ code: 'OUTCOME_UNKNOWN' })
  await withdrawing
  pass()
  await late
  sleep(5_000)
  await sweep(store, claim.ttl)
  expect(await nodesOf(server, claim.name)).toEqual([])
  await store[Symbol.asyncDispose]()
})

test('an acquire that was given up creates no node after its withdrawal', async () => {
  await using store = storeOf(server)
  const [before, claim] = [claimOf('emptied'), claimOf('emptied')]
  await hold(store, claimOf('kept')) // so the session stays
  await hold(store, before)
  await store.release(before, signal)
  const admin = await connectionTo(server)
  await admin.send(remove('/holdfast/emptied')) // as the server removes empty containers
  const { send } = Group.prototype
  const { op } = create('', '', [], 'ephemeral')
  const refused = Promise.withResolvers<() => void>()
  let creations = 0
  vi.spyOn(Group.prototype, 'send').mockImplementation(async function (this: Group, connection, request) {
    if (request.op !== op || ++creations > 1) return send.call(this, connection, request)
    return send.call(this, connection, request).catch(async error => {
      await new Promise<void>(pass => refused.resolve(pass))
      throw error
    })
  })
  const controller = new AbortController()
  const late = failureOf(store.acquire(claim, controller.signal))
  const pass = await refused.promise
  await admin.send(createContainer('/holdfast/emptied', { permissions: 31, scheme: 'world', id: 'anyone' }))
  controller.abort(new Error('given up'))
  expect(await store.release(claim, signal)).toBe('gone')
  pass()
  expect(await late).toMatchObject({ message: 'given up' })
  expect(creations).toBe(2) // its own, and the tombstone
  admin.end(new Error('the test is over'))
})

test.each([false, true])('a grant that is answered after a pause keeps its node (of a waiter: %s)', async waits => {
  const { store, sleep } = sleeping()
  await using _ = store
  const holder = claimOf(`paused ${waits}`)
  const claim = claimOf(holder.name, { queue: true })
  await hold(store, holder)
  if (waits) expect(await store.acquire(claim, signal)).toMatchObject({ held: false })
  await store.release(holder, signal)
  const held = holdBack(waits ? transactions : create('', '', [], 'ephemeral'), 'answer')
  const asked = store.acquire(claim, signal)
  const pass = await held
  sleep(6_000)
  pass()
  const answer = await asked
  expect(answer).toMatchObject({ held: true })
  expect(await store.renew(claim, signal)).toMatchObject({ token: answer.held && answer.token })
})

test('a claim that asks again, and is answered after a pause, keeps its node', async () => {
  const { store, sleep } = sleeping()
  await using _ = store
  const [claim, other] = [claimOf('again'), claimOf('again-other')]
  await hold(store, other)
  const { token } = await hold(store, claim) // as if that had been answered after the limit of the request
  sleep(4_000)
  await store.renew(other, signal)
  const held = holdBack(transactions, 'answer')
  const asked = store.acquire(claim, signal)
  const pass = await held
  sleep(7_000)
  await store.renew(other, signal) // a sweep
  pass()
  expect(await asked).toMatchObject({ held: true, token })
  expect(await store.renew(claim, signal)).toMatchObject({ token })
})

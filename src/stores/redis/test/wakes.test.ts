/** Waiters of the process that frees a name: they ask with its request, or its answer wakes them. */
import { Redis } from 'ioredis'
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest'
import { startProxy, type TcpProxy } from '../../../../lab/servers/proxy.ts'
import { type RedisServer, startRedis } from '../../../../lab/servers/redis.ts'
import { until } from '../../../../lab/servers/until.ts'
import { monitor } from '../../../../test/monitor.ts'
import type { Claim, Store } from '../../../contract/store.ts'
import { createLocks } from '../../../index.ts'
import { acquire, claimOf, failureOf, hold, look, signal, storeOf } from './support.ts'

/** By itself a waiter asks after 3.3 s. */
const AT_ONCE = { limit: 2_000 }

let server: RedisServer
let proxy: TcpProxy
/** Through the proxy, and straight to the server. */
let store: Store
let other: Store

beforeAll(async () => {
  server = await startRedis()
})
afterAll(() => server.stop())
beforeEach(async () => {
  await server.call('FLUSHALL')
  proxy = await startProxy(server)
  store = storeOf(new Redis({ port: proxy.port, lazyConnect: true }))
  other = storeOf(new Redis({ port: server.port, lazyConnect: true }))
  await store.watch?.(claimOf('to subscribe'), () => {}, signal)
})
afterEach(async () => {
  await Promise.all([store, other].map(each => each[Symbol.asyncDispose]()))
  await proxy.stop()
})

/** The verbs of each call of the script, and the number of messages, until `work` is done. */
async function costOf(work: () => Promise<unknown>): Promise<{ verbs: string[][]; messages: number }> {
  using watcher = await monitor(server)
  await work()
  const all = await watcher.all()
  const calls = all.filter(({ command, inScript }) => command.startsWith('eval') && !inScript)
  return {
    verbs: calls.map(({ args }) => args.flatMap(arg => /^([a-zA-Z]+) \d+ \d+ /.exec(arg)?.[1] ?? [])),
    messages: all.filter(({ command }) => command === 'publish').length,
  }
}

/** A waiter that notes in `heard` after how many milliseconds it is told to ask. */
async function waiter(
  of: Store,
  name: string,
  heard: number[],
  claim = claimOf(name, { queue: true }),
): Promise<Claim> {
  expect(await acquire(of, claim)).toMatchObject({ held: false })
  await of.watch?.(claim, (delay = 0) => heard.push(delay), signal)
  return claim
}

test('a release and the acquire of the next waiter of the same process are one call, without a message', async () => {
  const locks = createLocks(store, { ttl: 60_000 })
  const served: number[] = []
  let lease = await locks.acquire('a')
  const waiting = Array.from({ length: 10 }, async (_, place) => {
    const own = await locks.acquire('a')
    served.push(place)
    return own
  })
  await until('they wait', async () => (await locks.inspect('a')).waiters.length === 10)
  const { verbs, messages } = await costOf(async () => {
    for (const next of waiting) {
      await lease.release()
      lease = await next
    }
  })
  expect(served).toEqual(waiting.map((_, place) => place))
  expect(verbs).toEqual(waiting.map(() => ['release', 'acquire']))
  expect(messages).toBe(0)
  await lease.release()
})

test('the release of a slot and the permit of the next waiter of the same process are one call', async () => {
  const locks = createLocks(store, { ttl: 60_000 })
  const semaphore = locks.semaphore('a', { limit: 2 })
  const held = [await semaphore.acquire(), await semaphore.acquire()]
  const waiting = Array.from({ length: 3 }, () => semaphore.acquire())
  await until('they wait', async () => (await look(store, { name: 'a' })).length === 5)
  const { verbs, messages } = await costOf(async () => {
    await held[0]?.release()
    await Promise.race(waiting)
  })
  expect(verbs).toEqual([['release', 'acquire']])
  expect(messages).toBe(0)
  await held[1]?.release()
  for (const next of waiting) await (await next).release()
})

test('a waiter of the same process that does not ask is woken by the answer', async () => {
  const heard: number[] = []
  await hold(other, claimOf('a'))
  await waiter(store, 'a', heard)
  expect(await costOf(() => store.break('a', { by: 'test' }, signal))).toEqual({ verbs: [['break']], messages: 0 })
  await until('it is woken', () => heard.length > 0, AT_ONCE)
  expect(heard).toEqual([0])
})

test('a waiter is woken also if it asked in the same call, before the name was free', async () => {
  const heard: number[] = []
  await hold(store, claimOf('a'))
  const first = await waiter(store, 'a', heard)
  const [busy] = await Promise.all([store.acquire(first, signal), store.break('a', { by: 'test' }, signal)])
  expect(busy).toMatchObject({ held: false })
  await until('it is woken', () => heard.length > 0, AT_ONCE)
  expect(await hold(store, first)).toBeTypeOf('bigint')
})

test.each([0, 1])('if the answer is lost, the first waiter asks; also after %d releases in vain', async inVain => {
  const heard: number[] = []
  await hold(other, claimOf('a'))
  const own = await waiter(store, 'a', heard)
  for (let count = 0; count < inVain; count += 1) {
    await store.release(claimOf('a'), signal) // of a claim that does not hold it: the name stays held
    await acquire(store, own)
  }
  heard.length = 0
  const cut = proxy.cutAfterRequest('break')
  expect(await failureOf(store.break('a', { by: 'test' }, signal))).toMatchObject({ code: 'OUTCOME_UNKNOWN' })
  await cut
  await until('it asks', () => heard.length > 0, AT_ONCE)
  expect(heard).toEqual([0])
})

test('if the answer that grants a permit is lost, the next waiter asks', async () => {
  const [holder, heard]: [Claim, number[]] = [claimOf('a', { limit: 2, units: 2 }), []]
  await hold(other, holder)
  const permit = (): Claim => claimOf('a', { limit: 2, queue: true })
  const first = await waiter(store, 'a', [], permit())
  const second = await waiter(store, 'a', heard, permit())
  await other.release(holder, signal)
  heard.length = 0
  // That of the script. If the round trip was long before, a program that cannot decide here may be asked first.
  const cut = proxy.cutAfterRequest(/acquire \d+ \d+ /)
  expect(await failureOf(acquire(store, first))).toMatchObject({ code: 'OUTCOME_UNKNOWN' })
  await cut
  expect((await look(other, { name: 'a' })).map(({ state }) => state)).toEqual(['held', 'waiting'])
  await until('it asks', () => heard.includes(0), AT_ONCE)
  expect(await hold(store, second)).toBeTypeOf('bigint')
})

test('a lost answer wakes no other waiter while the first asks', async () => {
  const heard: number[] = []
  await hold(other, claimOf('a'))
  await waiter(store, 'a', heard)
  await waiter(store, 'a', heard)
  for (let round = 0; round < 3; round += 1) {
    const cut = proxy.cutAfterRequest('release')
    expect(await failureOf(store.release(claimOf('b'), signal))).toMatchObject({ code: 'OUTCOME_UNKNOWN' })
    await cut
  }
  expect(heard).toEqual([])
  for (let round = 0; round < 3; round += 1) {
    const cut = proxy.cutAfterRequest('renew')
    expect(await failureOf(store.renew(claimOf('a'), signal))).toMatchObject({ code: 'OUTCOME_UNKNOWN' })
    await cut
  }
  expect(heard).toEqual([0])
})

test('an error reply of the server wakes nobody', async () => {
  const heard: number[] = []
  await hold(other, claimOf('a'))
  await waiter(store, 'a', heard)
  await server.call('CONFIG', 'SET', 'replica-serve-stale-data', 'no')
  await server.call('REPLICAOF', '127.0.0.1', '1')
  expect((await failureOf(store.renew(claimOf('a'), signal))).message).toMatch('MASTERDOWN')
  await server.call('REPLICAOF', 'NO', 'ONE')
  expect(heard).toEqual([])
})

test('a process whose waiters are not first seldom asks in vain', async () => {
  const [holder, heard]: [Claim, number[]] = [claimOf('a'), []]
  await hold(store, holder)
  await waiter(other, 'a', [])
  const own = await waiter(store, 'a', heard)
  const requests: Promise<unknown>[] = []
  for (let round = 0; round < 100; round += 1) {
    const before = heard.length
    await store.release(claimOf('a'), signal) // of a claim that does not hold it: the name stays held
    if (heard.length > before) requests.push(acquire(store, own))
    await Promise.all(requests)
  }
  expect(heard.length).toBe(9) // rounds 0, 2, 6, 14, and then every 16th
})

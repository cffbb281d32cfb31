/** A release grants the name to the first waiter, which takes it without a request (R15). */
import { Redis } from 'ioredis'
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest'
import { startClock } from '../../../../lab/servers/clock.ts'
import { startProxy, type TcpProxy } from '../../../../lab/servers/proxy.ts'
import { type RedisServer, startRedis } from '../../../../lab/servers/redis.ts'
import { until } from '../../../../lab/servers/until.ts'
import { type Monitor, monitor } from '../../../../test/monitor.ts'
import { inTime, TooSlow } from '../../../conformance/timing.ts'
import type { Claim, Store } from '../../../contract/store.ts'
import { TURN } from '../../../contract/time.ts'
import { createLocks } from '../../../index.ts'
import { acquire, claimOf, hold, look, signal, storeOf } from './support.ts'

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
  await server.call('CONFIG', 'SET', 'maxmemory', '0')
  proxy = await startProxy(server)
  store = storeOf(new Redis({ port: proxy.port, lazyConnect: true }))
  other = storeOf(new Redis({ port: server.port, lazyConnect: true }))
  await store.watch?.(claimOf('to subscribe'), () => {}, signal)
})
afterEach(async () => {
  await Promise.all([store, other].map(each => each[Symbol.asyncDispose]()))
  await proxy.stop()
})

const handoff = { queue: true, handoff: true }

/** When the first waiter of an attempt asked. */
let asked = 0

/** A handoff needs a waiter that asked just now, so an attempt that took too long is repeated. */
function timely(body: () => Promise<void>): Promise<void> {
  const attempt = async (): Promise<void> => {
    await server.call('CONFIG', 'SET', 'maxmemory', '0')
    await server.call('FLUSHALL')
    asked = Number.POSITIVE_INFINITY
    await body().catch(error => {
      throw performance.now() - asked > TURN / 2 ? new TooSlow(String(error)) : error
    })
  }
  return inTime(TURN / 2, attempt)
}

/** A watched waiter. Counts its wakes. */
async function waiter(of: Store, claim: Claim): Promise<{ readonly claim: Claim; readonly wakes: number }> {
  const seen = { claim, wakes: 0 }
  asked = Math.min(asked, performance.now())
  expect(await acquire(of, claim)).toMatchObject({ held: false })
  await of.watch?.(claim, () => (seen.wakes += 1), signal)
  return seen
}

/** Of all requests to the script. */
function verbsOf(commands: Awaited<ReturnType<Monitor['all']>>): string[] {
  const calls = commands.filter(({ inScript }) => !inScript)
  return calls.flatMap(({ args }) => args.flatMap(arg => /^([a-zA-Z]+) \d+ \d+ /.exec(arg)?.[1] ?? []))
}

test('a handoff between two processes takes one request: the release', async () => {
  const [near, far] = [createLocks(other, { ttl: 60_000 }), createLocks(store, { ttl: 60_000 })]
  await inTime(TURN / 2, async () => {
    const held = await near.acquire('a')
    using watcher = await monitor(server)
    const asked = performance.now()
    const waiting = far.acquire('a')
    await until('it waits', async () => (await near.inspect('a')).waiters.length === 1)
    const took = performance.now() - asked
    await held.release()
    const lease = await waiting
    expect(lease.token).toBeGreaterThan(held.token)
    await lease.release()
    if (took > TURN / 2) throw new TooSlow('it may have asked too long ago')
    expect(verbsOf(await watcher.all()).filter(verb => verb !== 'inspect')).toEqual(['acquire', 'release', 'release'])
  })
})

test('the lease is the same for everybody, and is renewed and released as any other', () =>
  timely(async () => {
    const first = claimOf('a')
    await hold(other, first)
    const next = await waiter(store, claimOf('a', { ...handoff, ttl: 5_000, note: 'mine' }))
    await other.release(first, signal)
    await until('it is woken', () => next.wakes === 1)
    expect(await look(other, { name: 'a' })).toMatchObject([{ state: 'held', note: 'mine', owner: next.claim.owner }])
    const grant = await acquire(store, next.claim)
    expect(grant).toMatchObject({ held: true, ttl: 5_000, handoff: true })
    expect(await acquire(store, next.claim)).toEqual({ held: true, token: grant.held && grant.token, ttl: 5_000 })
    expect(await store.renew(next.claim, signal)).toMatchObject({ token: grant.held && grant.token })
    expect(await store.release(next.claim, signal)).toBe('released')
    expect(await server.call('KEYS', '*')).toEqual(['holdfast:token'])
  }))

test('the next waiters stay in the queue, in order', () =>
  timely(async () => {
    const first = claimOf('a')
    await hold(other, first)
    const waiters = []
    for (const of of [store, other, store]) waiters.push(await waiter(of, claimOf('a', handoff)))
    let last = first
    for (const [place, next] of waiters.entries()) {
      await (place % 2 ? store : other).release(last, signal)
      await until('it is woken', () => next.wakes > 0)
      const records = await look(other, { name: 'a' })
      expect(records.map(({ owner }) => owner)).toEqual(waiters.slice(place).map(({ claim }) => claim.owner))
      last = next.claim
    }
  }))

test.for([
  ['asked more than a grace period ago', async () => new Promise(resolve => setTimeout(resolve, TURN + 20))],
  ['has no subscription any more', async () => server.call('CLIENT', 'KILL', 'TYPE', 'pubsub')],
] as const)('a waiter that %s is only woken', async ([, before]) => {
  const first = claimOf('a')
  await hold(other, first)
  const next = await waiter(store, claimOf('a', handoff))
  await before()
  await other.release(first, signal)
  expect(await look(other, { name: 'a' })).toMatchObject([{ state: 'waiting' }])
  const grant = await acquire(store, next.claim)
  expect(grant).toMatchObject({ held: true })
  expect(grant).not.toHaveProperty('handoff')
})

test('a waiter without handoff, and one that withdrew, get nothing from a release', async () => {
  const first = claimOf('a')
  await hold(other, first)
  const gone = await waiter(store, claimOf('a', handoff))
  await waiter(store, claimOf('a', { queue: true }))
  await waiter(store, claimOf('a', handoff))
  expect(await store.release(gone.claim, signal)).toBe('released')
  await other.release(first, signal)
  expect(await look(other, { name: 'a' })).toMatchObject([{ state: 'waiting' }, { state: 'waiting' }])
})

test('a withdrawal while the name is free, and a break, hand it off too', () =>
  timely(async () => {
    const first = claimOf('a')
    await hold(other, first)
    const stale = await waiter(other, claimOf('a', { queue: true }))
    const second = await waiter(store, claimOf('a', handoff))
    await other.release(first, signal)
    expect(await look(other, { name: 'a' })).toMatchObject([{ state: 'waiting' }, { state: 'waiting' }])
    await other.release(stale.claim, signal)
    expect(await look(other, { name: 'a' })).toMatchObject([{ state: 'held', owner: second.claim.owner }])
    const third = await waiter(store, claimOf('a', handoff))
    const broken = await other.break('a', 'test', signal)
    const grant = await acquire(store, third.claim)
    expect(grant.held && grant.token > (broken ?? 0n)).toBe(true)
  }))

test('without its message, a waiter gets its lease when it asks', () =>
  timely(async () => {
    const first = claimOf('a')
    await hold(other, first)
    const next = await waiter(store, claimOf('a', handoff))
    await other.release(first, signal)
    const [record] = await look(other, { name: 'a' })
    expect(record).toMatchObject({ state: 'held', owner: next.claim.owner })
    expect(await acquire(other, next.claim)).toMatchObject({ held: true, token: record?.token }) // it heard nothing
  }))

test('a message that comes after the claim has asked again grants nothing', () =>
  timely(async () => {
    const [first, second] = [claimOf('a'), claimOf('a')]
    await hold(other, first)
    const next = await waiter(store, claimOf('a', { ...handoff, ttl: 300 }))
    const subscriber = new Redis({ port: server.port, lazyConnect: true })
    const messages: [string, string][] = []
    subscriber.on('pmessage', (_pattern, channel: string, message: string) => messages.push([channel, message]))
    await subscriber.psubscribe('holdfast:wake:*')
    await other.release(first, signal)
    await until('it is woken', () => next.wakes > 0)
    expect(await acquire(store, next.claim)).toMatchObject({ handoff: true })
    await until('its lease has ended', async () => (await acquire(other, second)).held)
    expect(await acquire(store, next.claim)).toMatchObject({ held: false })
    for (const [channel, message] of messages) await server.call('PUBLISH', channel, message) // once more, late
    await until('it is woken again', () => next.wakes > 1)
    expect(await acquire(store, next.claim)).toMatchObject({ held: false })
    subscriber.disconnect()
  }))

test('a waiter whose process cannot be notified is granted nothing', async () => {
  const client = new Redis({ port: server.port, lazyConnect: true })
  // As valkey-glide, which cannot subscribe: all its processes have the same channel.
  const glide = { customCommand: ([command = '', ...args]: string[]) => client.call(command, ...args) }
  await using near = storeOf(glide)
  const first = claimOf('a')
  await hold(near, first)
  expect(await acquire(near, claimOf('a', handoff))).toMatchObject({ held: false })
  await near.release(first, signal)
  expect(await look(other, { name: 'a' })).toMatchObject([{ state: 'waiting' }])
  client.disconnect()
})

test('a message of another kind only wakes', async () => {
  const first = claimOf('a')
  await hold(other, first)
  const next = await waiter(store, claimOf('a', handoff))
  const channels = (await server.call('PUBSUB', 'CHANNELS')) as string[]
  for (const channel of channels) await server.call('PUBLISH', channel, `${next.claim.id} 0 another-version 1`)
  await until('it is woken', () => next.wakes > 0)
  expect(await acquire(store, next.claim)).toMatchObject({ held: false })
})

test('a closed store grants nothing', async () => {
  const first = claimOf('a')
  await hold(other, first)
  const next = await waiter(store, claimOf('a', handoff))
  await other.release(first, signal)
  await until('it is woken', () => next.wakes > 0)
  await store[Symbol.asyncDispose]()
  await expect(acquire(store, next.claim)).rejects.toMatchObject({ code: 'CLOSED' })
})

test('after the clock of the server was set back, waiters are only woken', async () => {
  using clock = startClock()
  const shifted = await startRedis({ clock })
  await using near = storeOf(new Redis({ port: shifted.port, lazyConnect: true }))
  const first = claimOf('a', { ttl: 60_000 })
  await hold(near, first)
  await waiter(near, claimOf('a', handoff))
  clock.jumpWall(-3_600_000)
  await near.release(first, signal)
  expect(await look(near, { name: 'a' })).toMatchObject([{ state: 'waiting' }])
  await shifted.stop()
})

test('a server without memory hands a name off', () =>
  timely(async () => {
    const first = claimOf('a')
    await hold(other, first)
    await waiter(store, claimOf('a', handoff))
    await server.call('CONFIG', 'SET', 'maxmemory', '1')
    expect(await other.release(first, signal)).toBe('released')
    expect(await look(other, { name: 'a' })).toMatchObject([{ state: 'held' }])
  }))

test('where no token is left, the waiter is woken and learns why', async () => {
  const first = claimOf('a')
  await hold(other, first)
  const next = await waiter(store, claimOf('a', handoff))
  await server.call('SET', 'holdfast:token', String(Number.MAX_SAFE_INTEGER))
  expect(await other.release(first, signal)).toBe('released')
  await until('it is woken', () => next.wakes > 0)
  await expect(acquire(store, next.claim)).rejects.toThrow('used up its tokens')
})

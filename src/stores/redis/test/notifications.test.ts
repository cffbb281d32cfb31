import { setTimeout as sleep } from 'node:timers/promises'
import { Redis } from 'ioredis'
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest'
import { startProxy, type TcpProxy } from '../../../../lab/servers/proxy.ts'
import { type RedisServer, startRedis } from '../../../../lab/servers/redis.ts'
import { until } from '../../../../lab/servers/until.ts'
import type { Busy, Claim, Grant, Store } from '../../../contract/store.ts'
import { TURN } from '../../../contract/time.ts'
import { createLocks } from '../../../index.ts'
import { acquire, claimOf, hold, look, signal, storeOf } from './support.ts'

let server: RedisServer
let proxy: TcpProxy
/** Straight to the server, and through the proxy. */
let near: Store
let far: Store

beforeAll(async () => {
  server = await startRedis()
})
afterAll(() => server.stop())
beforeEach(async () => {
  await server.call('FLUSHALL')
  proxy = await startProxy(server)
  near = storeOf(new Redis({ port: server.port, lazyConnect: true }))
  far = storeOf(new Redis({ port: proxy.port, lazyConnect: true }))
})
afterEach(async () => {
  await near[Symbol.asyncDispose]()
  await far[Symbol.asyncDispose]()
  await proxy.stop()
})

const commands = async (): Promise<number> => {
  const { total_commands_processed } = await server.info('stats')
  return Number(total_commands_processed)
}

test('a waiter with a subscription sends no request until it is woken', async () => {
  const [holder, waiter] = [createLocks(near, { ttl: 60_000 }), createLocks(far, { ttl: 60_000 })]
  const lease = await holder.acquire('a')
  const waiting = waiter.acquire('a')
  await until('it waits', async () => (await look(near, { name: 'a' })).length === 2)
  await sleep(100)
  const before = await commands()
  await sleep(500)
  // Each check of the count sends a few commands itself.
  expect((await commands()) - before).toBeLessThan(10)
  await lease.release()
  await (await waiting).release()
})

test('a waiter that lost its subscription polls until it has one again', async () => {
  const [holder, waiter] = [createLocks(near, { ttl: 60_000 }), createLocks(far, { ttl: 60_000 })]
  for (const how of ['cut', 'away'] as const) {
    const lease = await holder.acquire('a')
    const waiting = waiter.acquire('a')
    await until('it waits', async () => (await look(near, { name: 'a' })).length === 2)
    if (how === 'away') await proxy.refuse()
    proxy.reset()
    await lease.release()
    await sleep(50)
    await proxy.accept()
    await (await waiting).release()
  }
})

/** A waiter for a name that the holder has; `near` asks, `far` held it. */
async function waiterFor(name: string): Promise<{ holder: Claim; waiter: Claim; busy: Grant | Busy }> {
  const [holder, waiter] = [claimOf(name), claimOf(name, { queue: true, roundTrip: 0 })]
  await hold(far, holder)
  return { holder, waiter, busy: await acquire(near, waiter) }
}

test('a wake that comes before the watch is not lost, once subscribed', async () => {
  const first = await waiterFor('a')
  expect(first.busy).toMatchObject({ held: false, listens: false })
  let wakes = 0
  await near.watch?.(first.waiter, () => (wakes += 1), signal)
  const early = await waiterFor('b')
  expect(early.busy).toMatchObject({ held: false, listens: true })
  await far.release(early.holder, signal)
  await far.release(first.holder, signal)
  await until('the later message is heard', () => wakes === 1)
  const delays: number[] = []
  await near.watch?.(early.waiter, (delay = 0) => delays.push(delay), signal)
  expect(delays).toEqual([0])
})

test('the second waiter is told to follow the first, of whichever process, and no other is told', async () => {
  const { holder, waiter: head } = await waiterFor('a')
  const another = (): Claim => claimOf('a', { queue: true, roundTrip: 0 })
  const heard: [Claim, number][] = []
  const claims = [head, another(), another()] as const
  for (const [place, claim] of claims.entries()) {
    const store = place === 1 ? far : near
    await acquire(store, claim)
    await store.watch?.(claim, (delay = 0) => heard.push([claim, delay]), signal)
  }
  const [, second, third] = claims
  await using apart = storeOf(new Redis({ port: server.port, lazyConnect: true })) // it has no waiters of its own
  const released = performance.now()
  await apart.release(holder, signal)
  await until('both are woken', () => heard.length > 1)
  expect(heard).toEqual(
    expect.arrayContaining([
      [head, 0],
      [second, TURN],
    ]),
  )
  const answer = await acquire(far, second)
  // Redis counts whole milliseconds.
  if (answer.held) expect(performance.now() - released).toBeGreaterThan(TURN - 1)
  else expect(answer).toMatchObject({ ahead: 1 })
  await until('the grace period of the first is over', async () => (await acquire(far, second)).held)
  expect(heard.filter(([claim]) => claim === third)).toEqual([])
  expect(await look(near, { name: 'a' })).toMatchObject([{ state: 'held' }, { position: 0 }, { position: 1 }])
})

test('a waiter that was passed keeps its position, and asks before those behind it', async () => {
  const { holder, waiter: head } = await waiterFor('a')
  const [second, third] = [claimOf('a', { queue: true }), claimOf('a', { queue: true })]
  for (const claim of [second, third]) await acquire(far, claim)
  await far.release(holder, signal)
  await until('it is passed', async () => (await acquire(far, second)).held)
  expect(await acquire(far, third)).toMatchObject({ held: false, ahead: 0 })
  expect(await acquire(near, head)).toMatchObject({ held: false, ahead: 0 })
  expect(await acquire(far, third)).toMatchObject({ held: false, ahead: 1 })
})

test('subscribes once for all waiters of a process, and once for each process', async () => {
  const holder = claimOf('a')
  await hold(near, holder)
  const claims = Array.from({ length: 100 }, (_, index) => claimOf(index % 2 ? 'a' : 'b', { queue: true }))
  await Promise.all(claims.map(claim => acquire(far, claim)))
  const controller = new AbortController()
  await Promise.all(claims.map(async claim => far.watch?.(claim, () => {}, controller.signal)))
  expect(await server.call('PUBSUB', 'CHANNELS')).toHaveLength(1)
  expect(proxy.connections).toBe(2)
  controller.abort()
})

test('a waiter is not woken by a release of another name, nor twice by one', async () => {
  const [a, b] = [claimOf('a'), claimOf('b')]
  await hold(near, a)
  await hold(near, b)
  const waiting = claimOf('a', { queue: true })
  await acquire(far, waiting)
  let woken = 0
  await far.watch?.(waiting, () => (woken += 1), signal)
  await near.release(b, signal)
  await near.release(a, signal)
  await until('it is woken', () => woken > 0)
  await sleep(20)
  expect(woken).toBe(1)
})

test('watching a closed store rejects', async () => {
  await far[Symbol.asyncDispose]()
  await expect(far.watch?.(claimOf('a'), () => {}, signal)).rejects.toMatchObject({ code: 'CLOSED' })
})

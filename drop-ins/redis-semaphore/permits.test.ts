import { Redis } from 'ioredis'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type RedisServer, startRedis } from '../../lab/servers/redis.ts'
import { until } from '../../lab/servers/until.ts'
import { LeaseError } from '../../src/index.ts'
import { MultiSemaphore, RedlockMultiSemaphore, RedlockSemaphore, Semaphore } from './index.ts'

const once = { acquireAttemptsLimit: 1 }

let servers: RedisServer[]
let clients: Redis[]
beforeAll(async () => {
  servers = await Promise.all([startRedis(), startRedis(), startRedis()])
  clients = servers.map(({ port, host }) => new Redis(port, host))
})
afterAll(async () => {
  await Promise.all(clients.map(each => each.quit()))
  await Promise.all(servers.map(each => each.stop()))
})

test('over one server a limit may be any number, and a holder has up to 64 permits', async () => {
  const [client] = clients as [Redis]
  const most = new MultiSemaphore(client, 'a', 100, 64)
  await most.acquire()
  const others = Array.from({ length: 36 }, () => new Semaphore(client, 'a', 100))
  await Promise.all(others.map(other => other.acquire()))
  expect(await new Semaphore(client, 'a', 100, once).tryAcquire()).toBe(false)
  await Promise.all([most, ...others].map(each => each.release()))
})

test('over several servers, several permits are held all or none, waited for and renewed, until none is', async () => {
  const trusted = { trustRestarted: true, lockTimeout: 3_000 }
  const one = new RedlockSemaphore(clients, 'b', 20, trusted)
  const most = new RedlockMultiSemaphore(clients, 'b', 20, 19, trusted)
  await Promise.all([one.acquire(), most.acquire()])
  expect(await new RedlockMultiSemaphore(clients, 'b', 20, 2, { ...trusted, ...once }).tryAcquire()).toBe(false)
  const rest = new RedlockSemaphore(clients, 'b', 20, { ...trusted, ...once })
  expect(await rest.tryAcquire()).toBe(false)
  const two = new RedlockMultiSemaphore(clients, 'b', 20, 2, trusted)
  const waiting = two.acquire()
  const end = (): number => performance.now() + (most.lease?.remaining ?? 0)
  const before = end()
  await until('it was renewed', () => end() > before + 100)
  await one.release()
  expect(await new RedlockMultiSemaphore(clients, 'b', 20, 2, { ...trusted, ...once }).tryAcquire()).toBe(false)
  most.stopRefresh()
  await waiting
  expect([most.isAcquired, two.isAcquired]).toEqual([false, true])
  await two.release()
  const all = new RedlockMultiSemaphore(clients, 'b', 20, 20, trusted)
  await all.acquire()
  await all.release()
  const tooMany = new RedlockMultiSemaphore(clients, 'b', 2, 3, trusted).acquire()
  await expect(tooMany).rejects.toSatisfy(error => LeaseError.is(error, 'INVALID_ARGUMENT'))
})

test('a semaphore that another task releases meanwhile is acquired anew', async () => {
  const [client] = clients as [Redis]
  const semaphore = new Semaphore(client, 'c', 1, once)
  await semaphore.acquire()
  const tokens = [semaphore.token]
  const releasing = semaphore.release()
  expect(semaphore.isAcquired, 'another may hold it before the release is confirmed').toBe(false)
  await Promise.all([semaphore.acquire(), releasing])
  tokens.push(semaphore.token)
  await Promise.all([semaphore.acquire(), semaphore.release()]) // the release overtakes the renewal
  tokens.push(semaphore.token)
  await semaphore.lease?.release()
  expect(semaphore.isAcquired).toBe(false)
  await semaphore.acquire()
  tokens.push(semaphore.token)
  expect(tokens.map(Number)).toEqual([...new Set(tokens)].map(Number).sort((a, b) => a - b))
  expect(semaphore.isAcquired).toBe(true)
  await semaphore.release()
})

test('tasks that share a semaphore acquire and release it at any time', async () => {
  const [client] = clients as [Redis]
  const semaphore = new Semaphore(client, 'd', 3)
  const task = async (): Promise<void> => {
    for (let round = 0; round < 20; round += 1) {
      await semaphore.acquire()
      await new Promise(setImmediate)
      await semaphore.release()
    }
  }
  await Promise.all(Array.from({ length: 12 }, task))
  expect(semaphore.isAcquired).toBe(false)
})

test('the limit of each call counts from that call, however many tasks share a semaphore', async () => {
  const [client] = clients as [Redis]
  const holder = new Semaphore(client, 'e', 1)
  await holder.acquire()
  const semaphore = new Semaphore(client, 'e', 1, { acquireTimeout: 1_000 })
  const started = performance.now()
  const ends = await Promise.all(Array.from({ length: 8 }, () => semaphore.tryAcquire()))
  expect(performance.now() - started).toBeLessThan(4_000)
  expect(ends).toEqual(Array.from({ length: 8 }, () => false))
  const abort = new AbortController()
  const aborted = semaphore.acquire(abort.signal)
  const waiting = semaphore.acquire()
  abort.abort(new Error('enough'))
  await expect(aborted).rejects.toThrow('enough')
  await holder.release()
  await waiting
  await semaphore.release()
})

test('calls that share a semaphore reject together while its server does not answer', async () => {
  const server = await startRedis()
  const client = new Redis(server.port, server.host)
  const semaphore = new Semaphore(client, 'a', 1, once)
  await semaphore.acquire()
  await semaphore.release()
  await server.pause()
  const started = performance.now()
  const calls = await Promise.allSettled(Array.from({ length: 8 }, () => semaphore.tryAcquire()))
  expect(performance.now() - started).toBeLessThan(8_000)
  for (const call of calls) expect(call).toMatchObject({ reason: { code: 'STORE_UNAVAILABLE' } })
  client.disconnect()
  await server.stop()
}, 30_000)

import { Redis } from 'ioredis'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type RedisServer, startRedis } from '../../lab/servers/redis.ts'
import { until } from '../../lab/servers/until.ts'
import { LeaseError } from '../../src/index.ts'
import { RedlockMultiSemaphore, RedlockSemaphore } from './index.ts'

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

test('several permits are held all or none, waited for and renewed, until none is', async () => {
  const trusted = { trustRestarted: true, lockTimeout: 3_000 }
  const one = new RedlockSemaphore(clients, 'b', 20, trusted)
  const most = new RedlockMultiSemaphore(clients, 'b', 20, 19, trusted)
  await Promise.all([one.acquire(), most.acquire()])
  expect(await new RedlockMultiSemaphore(clients, 'b', 20, 2, { ...trusted, ...once }).tryAcquire()).toBe(false)
  const rest = new RedlockSemaphore(clients, 'b', 20, { ...trusted, ...once })
  expect(await rest.tryAcquire()).toBe(false)
  const two = new RedlockMultiSemaphore(clients, 'b', 20, 2, trusted)
  const waiting = two.acquire()
  const before = most.lease?.remaining ?? 0
  await until('it was renewed', () => (most.lease?.remaining ?? 0) > before)
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

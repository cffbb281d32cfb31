import { randomUUID } from 'node:crypto'
import { Redis } from 'ioredis'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { type RedisServer, startRedis } from '../../lab/servers/redis.ts'
import { MultiSemaphore, Mutex, RedlockMutex, RedlockSemaphore, Semaphore } from './index.ts'

const once = { acquireAttemptsLimit: 1 }

let servers: RedisServer[]
let clients: [Redis, Redis, Redis]

beforeAll(async () => {
  servers = await Promise.all([startRedis(), startRedis(), startRedis()])
})
afterAll(() => Promise.all(servers.map(server => server.stop())))
beforeEach(() => {
  // Each test has its own keys: a lock that an earlier test still holds would be lost without its key.
  const keyPrefix = `${randomUUID()}:`
  clients = servers.map(({ port, host }) => new Redis(port, host, { keyPrefix })) as typeof clients
  return () => Promise.all(clients.map(client => client.quit()))
})

test('a mutex holds the key of redis-semaphore as well', async () => {
  const [client] = clients
  const mutex = new Mutex(client, 'a', { alongside: true })
  await mutex.acquire()
  expect(await client.set('mutex:a', 'old', 'PX', 60_000, 'NX')).toBeNull()
  await mutex.release()
  expect(await client.set('mutex:a', 'old', 'PX', 60_000, 'NX')).toBe('OK')
  expect(await new Mutex(client, 'a', { ...once, alongside: true }).tryAcquire()).toBe(false)
})

test('a mutex over several servers holds the key on a majority', async () => {
  const mutex = new RedlockMutex(clients, 'a', { alongside: true, trustRestarted: true })
  await mutex.acquire()
  const answers = await Promise.all(clients.map(client => client.set('mutex:a', 'old', 'PX', 60_000, 'NX')))
  expect(answers.filter(answer => answer === 'OK').length).toBeLessThan(2)
  await mutex.release()
})

test('a mutex that redis-semaphore holds is refused by default', async () => {
  const [client] = clients
  await client.set('mutex:a', 'old', 'PX', 60_000)
  expect(await new Mutex(client, 'a', once).tryAcquire()).toBe(false)
  await new Mutex(client, 'b', once).acquire()
  expect(await client.exists('mutex:b')).toBe(0)
})

test('a mutex of a subclass holds the key that this sets', async () => {
  class Unprefixed extends Mutex {
    constructor(...args: ConstructorParameters<typeof Mutex>) {
      super(...args)
      this._key = args[1]
    }
  }
  const [client] = clients
  const mutex = new Unprefixed(client, 'a', { alongside: true })
  await mutex.acquire()
  expect(await client.exists('a')).toBe(1)
  await mutex.release()
})

test('a semaphore of a subclass is acquired under the key that this sets', async () => {
  class Renamed extends Semaphore {
    constructor(...args: ConstructorParameters<typeof Semaphore>) {
      super(...args)
      this._key = `app:${args[1]}`
    }
  }
  const [client] = clients
  await client.zadd('app:a', Date.now(), 'old')
  const semaphore = new Renamed(client, 'a', 2)
  expect(await semaphore.tryAcquire()).toBe(true)
  expect(semaphore.lease).toMatchObject({ name: 'app:a' })
})

test('a semaphore has no key of redis-semaphore, and refuses to be held alongside', async () => {
  const [client] = clients
  await client.zadd('semaphore:a', Date.now(), 'old')
  await new Semaphore(client, 'a', 1, once).acquire()
  const alongside = { alongside: true }
  expect(() => new Semaphore(client, 'a', 2, alongside)).toThrow('Split the limit')
  expect(() => new MultiSemaphore(client, 'a', 2, 1, alongside)).toThrow('Split the limit')
  expect(() => new RedlockSemaphore(clients, 'a', 2, alongside)).toThrow('Split the limit')
})

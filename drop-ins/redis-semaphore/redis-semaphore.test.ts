import { spawn } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { createInterface } from 'node:readline'
import { Redis } from 'ioredis'
import { afterAll, beforeAll, beforeEach, describe, expect, onTestFinished, test, vi } from 'vitest'
import { reservePort } from '../../lab/servers/port.ts'
import { type RedisServer, startRedis } from '../../lab/servers/redis.ts'
import { until } from '../../lab/servers/until.ts'
import { createLocks, LeaseError, type Locks } from '../../src/index.ts'
import { redis } from '../../src/stores/redis/index.ts'
import {
  defaultTimeoutOptions,
  LostLockError,
  MultiSemaphore,
  Mutex,
  RedlockMultiSemaphore,
  RedlockMutex,
  RedlockSemaphore,
  Semaphore,
  TimeoutError,
} from './index.ts'

const once = { acquireAttemptsLimit: 1 }
const fixed = { lockTimeout: 1_000, refreshInterval: 0 }

let server: RedisServer
let client: Redis
/** What holdfast itself sees over the same server. */
let locks: Locks

beforeAll(async () => {
  server = await startRedis()
})
afterAll(() => server.stop())

beforeEach(async () => {
  // Each test has its own keys: a lock that an earlier test still holds would be lost without its key.
  client = new Redis(server.port, server.host, { keyPrefix: `${randomUUID()}:` })
  locks = createLocks(redis(client))
  return async () => {
    await locks.close({ grace: 0 })
    await client.quit()
  }
})

describe('options', () => {
  test('are checked as by redis-semaphore', () => {
    expect(() => new Mutex(null as never, 'a')).toThrow('"client" is required')
    expect(() => new Mutex(client, '')).toThrow('"key" is required')
    expect(() => new Mutex(client, 1 as never)).toThrow('"key" must be a string')
    expect(() => new Mutex(client, 'a', { identifier: '' })).toThrow('identifier must be not empty random string')
    expect(() => new Semaphore(client, 'a', 0)).toThrow('"limit" is required')
    expect(() => new Semaphore(client, 'a', '1' as never)).toThrow('"limit" must be a number')
    expect(() => new MultiSemaphore(client, 'a', 1, 0)).toThrow('"permits" is required')
    expect(() => new RedlockMutex(client as never, 'a')).toThrow('"clients" array is required')
    expect(() => new RedlockMultiSemaphore([client], 'a', 2, '1' as never)).toThrow('"permits" must be a number')
    expect(defaultTimeoutOptions).toMatchObject({ lockTimeout: 10_000, acquireTimeout: 10_000, retryInterval: 10 })
  })

  test('a lock that another process acquired is refused, with the reason', () => {
    const shared = { identifier: 'x', acquiredExternally: true } as const
    expect(() => new Mutex(client, 'a', shared)).toThrow(/one lease with one fencing token/)
    expect(() => new Semaphore(client, 'a', 2, { externallyAcquiredIdentifier: 'x' })).toThrow(/not supported/)
  })

  test('more than 64 permits of one holder are refused', () => {
    expect(() => new MultiSemaphore(client, 'a', 100, 65)).toThrow('"permits" must be at most 64, not 65')
    expect(() => new RedlockMultiSemaphore([client], 'a', 100, 65)).toThrow('"permits" must be at most 64')
  })

  test('the identifier is random, and the note of the lease', async () => {
    expect(new Mutex(client, 'a', { identifierSuffix: 'b' }).identifier).toMatch(/^[0-9a-f-]{36}-b$/)
    const mutex = new Mutex(client, 'a')
    expect(mutex.identifier).toMatch(/^[0-9a-f-]{36}$/)
    await mutex.acquire()
    expect(await locks.inspect('mutex:a')).toMatchObject({ holders: [{ note: mutex.identifier, token: mutex.token }] })
    const odd = new Mutex(client, 'b', { identifier: 'a\nb' })
    await odd.acquire()
    expect(odd.identifier).toBe('a\nb')
    expect(await locks.inspect('mutex:b')).toMatchObject({ holders: [{ note: '' }] })
  })
})

describe('a mutex', () => {
  test('is acquired and released, again and again', async () => {
    const mutex = new Mutex(client, 'a')
    expect(mutex.isAcquired).toBe(false)
    const tokens: bigint[] = []
    for (let round = 0; round < 3; round += 1) {
      await mutex.acquire()
      expect(mutex.isAcquired).toBe(true)
      tokens.push(mutex.token as bigint)
      await mutex.release()
      expect(mutex.isAcquired).toBe(false)
      expect(mutex.lease).toBeUndefined()
    }
    expect(tokens).toEqual([...new Set(tokens)].sort((a, b) => Number(a - b)))
    expect(await locks.inspect('mutex:a')).toMatchObject({ holders: [] })
    await mutex.release() // does nothing
  })

  test('is exclusive, also against itself and a lease of holdfast', async () => {
    const held = new Mutex(client, 'a')
    await held.acquire()
    expect(await held.tryAcquire.call(new Mutex(client, 'a', once))).toBe(false)
    const waiting = new Mutex(client, 'a', { acquireTimeout: 1_000 })
    await expect(waiting.acquire()).rejects.toThrow(TimeoutError)
    await expect(waiting.acquire()).rejects.toThrow('Acquire mutex mutex:a timeout')
    expect(await locks.tryAcquire('mutex:a')).toBeUndefined()
    await held.release()
    await locks.acquire('mutex:a')
    expect(await new Mutex(client, 'a', once).tryAcquire()).toBe(false)
  })

  test('without an attempt is not acquired', async () => {
    expect(await new Mutex(client, 'a', { acquireTimeout: 0 }).tryAcquire()).toBe(false)
    expect(await new Mutex(client, 'a', { acquireAttemptsLimit: 0 }).tryAcquire()).toBe(false)
  })

  test('is handed to the waiter at its release', async () => {
    const held = new Mutex(client, 'a', { lockTimeout: 60_000 })
    await held.acquire()
    const next = new Mutex(client, 'a', { acquireTimeout: 50_000 })
    const waiting = next.acquire()
    await until('it waits', async () => (await locks.inspect('mutex:a')).waiters.length === 1)
    await held.release()
    await waiting
    expect(next.isAcquired).toBe(true)
  })

  test('is waited for until the signal aborts', async () => {
    await locks.acquire('mutex:a')
    const abort = new AbortController()
    const waiting = new Mutex(client, 'a').acquire(abort.signal)
    await until('it waits', async () => (await locks.inspect('mutex:a')).waiters.length === 1)
    abort.abort(new Error('enough'))
    await expect(waiting).rejects.toThrow('enough')
    await expect(new Semaphore(client, 'a', 2).tryAcquire(abort.signal)).rejects.toThrow('enough')
    await until('it has left', async () => (await locks.inspect('mutex:a')).waiters.length === 0)
  })

  test('is renewed until it is released', async () => {
    const mutex = new Mutex(client, 'a', { lockTimeout: 3_000 })
    await mutex.acquire()
    await new Promise(resolve => setTimeout(resolve, 3_100)) // longer than its first term
    expect(mutex.isAcquired).toBe(true)
    await mutex.release()
  })

  test('without renewals ends by itself, and nothing is reported', async () => {
    const reported: Error[] = []
    const mutex = new Mutex(client, 'a', { ...fixed, onLockLost: error => reported.push(error) })
    await mutex.acquire()
    await until('it has ended', () => !mutex.isAcquired)
    await new Mutex(client, 'a').acquire()
    expect(reported).toEqual([])
  })

  test('may last longer than any ttl, without renewals', async () => {
    const mutex = new Mutex(client, 'a', { lockTimeout: 2 ** 40, refreshInterval: 0 })
    await mutex.acquire()
    expect(mutex.lease).toMatchObject({ ttl: 2 ** 31 - 1 })
    await mutex.release()
  })

  test('ends after its renewals were stopped, and nothing is reported', async () => {
    const reported: Error[] = []
    const mutex = new Mutex(client, 'a', { lockTimeout: 1_000, onLockLost: error => reported.push(error) })
    mutex.stopRefresh() // does nothing
    await mutex.acquire()
    mutex.stopRefresh()
    await until('it has ended', () => !mutex.isAcquired)
    expect(reported).toEqual([])
  })

  test('of a server that is down rejects with the reason', async () => {
    const port = await reservePort()
    const down = new Redis(port.number, '127.0.0.1', { lazyConnect: true }).on('error', () => {})
    const failing = new Mutex(down, 'a', once).acquire()
    await expect(failing).rejects.toSatisfy(error => LeaseError.is(error, 'STORE_UNAVAILABLE'))
    down.disconnect()
    await port.release()
  })
})

describe('a loss', () => {
  test('is reported to the callback, with the lock as `this`', async () => {
    const { promise: reported, resolve } = Promise.withResolvers<[LostLockError, string, boolean]>()
    const mutex = new Mutex(client, 'a', {
      lockTimeout: 3_000,
      onLockLost(error) {
        resolve([error, this.identifier, this.isAcquired])
      },
    })
    await mutex.acquire()
    const { lease } = mutex
    await locks.break('mutex:a')
    const [error, identifier, isAcquired] = await reported
    expect(error).toBeInstanceOf(LostLockError)
    expect(error.message).toBe('Lost mutex for key mutex:a')
    expect(LeaseError.is(error.cause, 'LEASE_LOST')).toBe(true)
    expect([identifier, isAcquired]).toEqual([mutex.identifier, false])
    expect(lease?.signal.aborted).toBe(true)
    await mutex.release()
    await mutex.acquire()
  })

  test('without a callback is an unhandled rejection', async () => {
    const program = `
      import { Redis } from 'ioredis'
      import { Mutex } from './index.ts'
      process.on('unhandledRejection', ({ message }) => {
        console.log(message)
        process.exit()
      })
      const client = new Redis(${server.port}, '${server.host}', { keyPrefix: '${client.options.keyPrefix}' })
      await new Mutex(client, 'a', { lockTimeout: 3_000 }).acquire()
      console.log('acquired')`
    const args = [...process.execArgv, '--input-type=module', '--eval', program]
    const child = spawn(process.execPath, args, { cwd: import.meta.dirname, stdio: ['ignore', 'pipe', 'inherit'] })
    onTestFinished(() => void child.kill())
    const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]()
    expect(await lines.next()).toMatchObject({ value: 'acquired' })
    await locks.break('mutex:a')
    expect(await lines.next()).toMatchObject({ value: 'Lost mutex for key mutex:a' })
  })

  test('is seen by isAcquired after the event loop was blocked', async () => {
    const mutex = new Mutex(client, 'a', { lockTimeout: 1_000, onLockLost: () => {} })
    await mutex.acquire()
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 1_200)
    expect(mutex.isAcquired).toBe(false)
  })

  test('that the release finds is reported as well', async () => {
    const reported: Error[] = []
    const mutex = new Mutex(client, 'a', { lockTimeout: 60_000, onLockLost: error => reported.push(error) })
    await mutex.acquire()
    await locks.break('mutex:a')
    await mutex.release()
    expect(reported).toHaveLength(1)
    expect(mutex.isAcquired).toBe(false)
  })
})

describe('a semaphore', () => {
  test('has up to `limit` holders, with permits of several sizes', async () => {
    const one = new Semaphore(client, 'a', 3)
    const two = new MultiSemaphore(client, 'a', 3, 2)
    await Promise.all([one.acquire(), two.acquire()])
    const more = new Semaphore(client, 'a', 3, { acquireTimeout: 1_000 })
    await expect(more.acquire()).rejects.toThrow('Acquire semaphore semaphore:a timeout')
    await two.release()
    await more.acquire()
    expect(await new MultiSemaphore(client, 'a', 3, 2, once).tryAcquire()).toBe(false)
    expect(one.lease).toMatchObject({ name: 'semaphore:a' })
    await Promise.all([one.release(), more.release()])
    expect(await locks.semaphore('semaphore:a', { limit: 3 }).tryAcquire({ permits: 3 })).toBeDefined()
  })

  test('that is acquired twice holds its permits once', async () => {
    const semaphore = new Semaphore(client, 'a', 2)
    await Promise.all([semaphore.acquire(), semaphore.acquire()])
    await semaphore.acquire()
    const other = new Semaphore(client, 'a', 2, once)
    expect(await other.tryAcquire()).toBe(true)
    await Promise.all([semaphore.release(), other.release()])
    expect(await new MultiSemaphore(client, 'a', 2, 2, once).tryAcquire()).toBe(true)
  })

  test('that was lost unnoticed is acquired anew, and the loss reported, also after `stopRefresh`', async () => {
    const onLockLost = vi.fn<(error: Error) => void>()
    const semaphore = new Semaphore(client, 'a', 2, { lockTimeout: 60_000, onLockLost })
    await semaphore.acquire()
    semaphore.stopRefresh()
    await semaphore.acquire()
    const { token } = semaphore
    await locks.break('semaphore:a')
    await semaphore.acquire()
    expect(onLockLost).toHaveBeenCalledOnce()
    expect(semaphore.token).toBeGreaterThan(token as bigint)
  })

  test('ends after its renewals were stopped, unless it is acquired again', async () => {
    const semaphore = new MultiSemaphore(client, 'a', 2, 2, { lockTimeout: 3_000 })
    await semaphore.acquire()
    semaphore.stopRefresh()
    await semaphore.acquire()
    await until('some of it is over', () => (semaphore.lease?.remaining ?? 0) < 2_500)
    await until('it was renewed', () => (semaphore.lease?.remaining ?? 0) > 2_500)
    semaphore.stopRefresh()
    await new MultiSemaphore(client, 'a', 2, 2).acquire()
    expect(semaphore.isAcquired).toBe(false)
  })
})

describe('over three servers', () => {
  let servers: RedisServer[]
  let clients: Redis[]
  beforeAll(async () => {
    servers = await Promise.all([startRedis(), startRedis(), startRedis()])
  })
  afterAll(() => Promise.all(servers.map(each => each.stop())))
  beforeEach(() => {
    clients = servers.map(({ port, host }) => new Redis(port, host))
    return () => Promise.all(clients.map(each => each.quit()))
  })

  test('a majority holds mutexes and semaphores', async () => {
    const trusted = { trustRestarted: true }
    const mutex = new RedlockMutex(clients, 'a', trusted)
    const semaphore = new RedlockSemaphore(clients, 'a', 3, trusted)
    const both = new RedlockMultiSemaphore(clients, 'a', 3, 2, trusted)
    await Promise.all([mutex.acquire(), semaphore.acquire(), both.acquire()])
    const another = new RedlockMutex(clients, 'a', { ...trusted, acquireTimeout: 1_000 })
    await expect(another.acquire()).rejects.toThrow('Acquire redlock-mutex mutex:a timeout')
    expect(await new RedlockSemaphore(clients, 'a', 3, { ...trusted, ...once }).tryAcquire()).toBe(false)
    await both.release()
    await new RedlockSemaphore(clients, 'a', 3, trusted).acquire()
    await mutex.release()
    await another.acquire()
  })

  test('servers that have just started count as time to wait', async () => {
    const mutex = new RedlockMutex(clients, 'a', { acquireTimeout: 1_000 })
    expect(await mutex.tryAcquire()).toBe(false)
    await expect(mutex.acquire()).rejects.toThrow(TimeoutError)
    const abort = new AbortController()
    const waiting = new RedlockMutex(clients, 'a').acquire(abort.signal)
    abort.abort(new Error('enough'))
    await expect(waiting).rejects.toThrow('enough')
  })
})

test('a client that has ended leaves no connections once nothing is held, and can come back', async () => {
  const own = await startRedis()
  const again = new Redis(own.port, own.host)
  const mutex = new Mutex(again, 'a')
  await mutex.acquire()
  again.disconnect()
  await until('the client has ended', () => again.status === 'end')
  expect(mutex.isAcquired).toBe(true)
  await mutex.release()
  await until('only this connection is left', async () => (await own.info('clients')).connected_clients === '1')
  await again.connect()
  await mutex.acquire()
  again.disconnect()
  await mutex.release()
  await own.stop()
})

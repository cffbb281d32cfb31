import { Redis } from 'ioredis'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { type RedisServer, startRedis } from '../../lab/servers/redis.ts'
import { until } from '../../lab/servers/until.ts'
import { createLocks, LeaseError, type Locks } from '../../src/index.ts'
import { redis } from '../../src/stores/redis/index.ts'
import Default, {
  ExecutionError,
  type ExecutionResult,
  Lock,
  Redlock,
  ResourceLockedError,
  type Settings,
} from './index.ts'

const LONGEST_TTL = 2 ** 31 - 1
const once = { retryCount: 0 }

let server: RedisServer
let client: Redis
/** What holdfast itself sees over the same server. */
let locks: Locks
let redlock: Redlock

beforeAll(async () => {
  server = await startRedis()
})
afterAll(() => server.stop())

beforeEach(async () => {
  await server.call('FLUSHALL')
  client = new Redis(server.port, server.host)
  locks = createLocks(redis(client))
  redlock = new Redlock([client])
  return async () => {
    await locks.close({ grace: 0 })
    await redlock.quit()
  }
})

async function failure(call: Promise<unknown>): Promise<ExecutionError> {
  const error = await call.then(
    () => undefined,
    error => error,
  )
  expect(error).toBeInstanceOf(ExecutionError)
  return error as ExecutionError
}

describe('a lock', () => {
  test('is acquired, extended and released', async () => {
    const lock = await redlock.acquire(['a'], 20_000)
    expect(lock.resources).toEqual(['a'])
    expect(lock.value).toMatch(/^[0-9a-f]{32}$/)
    expect(lock.expiration).toBeLessThanOrEqual(Date.now() + 20_000)
    expect(lock.expiration).toBeGreaterThan(Date.now() + 10_000)

    const extended = await lock.extend(60_000)
    expect(extended).toBeInstanceOf(Lock)
    expect(extended.value).toBe(lock.value)
    expect(lock.expiration).toBe(0)
    expect(extended.expiration).toBeGreaterThan(Date.now() + 40_000)

    const { attempts } = await extended.release()
    const [stats] = await Promise.all(attempts)
    expect(stats).toEqual({ membershipSize: 1, quorumSize: 1, votesFor: new Set([client]), votesAgainst: new Map() })
    expect(extended.expiration).toBe(0)
    expect(await locks.inspect('a')).toMatchObject({ holders: [] })
  })

  test('is a lease with a token that rises', async () => {
    const first = await redlock.acquire(['a'], 20_000)
    expect(await locks.inspect('a')).toMatchObject({ holders: [{ token: first.token }] })
    await first.release()
    const second = await redlock.acquire(['a'], 20_000)
    expect(second.token).toBeGreaterThan(first.token)
    expect(second.lease).toMatchObject({ name: 'a', token: second.token })
  })

  test('is exclusive, also against a lease of holdfast', async () => {
    await locks.acquire('a')
    const error = await failure(redlock.acquire(['a'], 20_000, { retryCount: 2, retryDelay: 500 }))
    expect(error.message).toBe('The operation was unable to achieve a quorum during its retry window.')
    expect(LeaseError.is(error.cause, 'BUSY')).toBe(true)
    expect(error.attempts).toHaveLength(3)
    for (const { votesFor, votesAgainst } of await Promise.all(error.attempts)) {
      expect(votesFor.size).toBe(0)
      expect(votesAgainst.get(client)).toBeInstanceOf(ResourceLockedError)
    }
  })

  test('on several resources holds all of them, or none', async () => {
    const both = await redlock.acquire(['a', 'b'], 20_000)
    expect(both.lease).toMatchObject({ names: ['a', 'b'] })
    await failure(redlock.acquire(['b', 'c'], 20_000, once))
    expect(await locks.inspect('c')).toMatchObject({ holders: [] })
    await both.release()
    expect(await locks.inspect('a')).toMatchObject({ holders: [] })
    await redlock.acquire(['c', 'b'], 20_000, once)
  })

  test('expires, and can then be neither extended nor released', async () => {
    const lock = await redlock.acquire(['a'], 1_000)
    await lock.lease.ended
    await until('the lock has expired', () => lock.expiration < Date.now())
    const next = await redlock.acquire(['a'], 20_000)
    expect(await failure(lock.extend(1_000))).toMatchObject({
      message: 'Cannot extend an already-expired lock.',
      attempts: [],
    })
    await failure(lock.release())
    expect(await locks.inspect('a')).toMatchObject({ holders: [{ token: next.token }] })
  })

  test('that was broken is reported by extend and by release', async () => {
    const lock = await redlock.acquire(['a'], 20_000)
    await locks.break('a')
    const error = await failure(lock.extend(20_000))
    expect(LeaseError.from(error)?.code).toBe('LEASE_LOST')
    expect((await error.attempts[0])?.votesAgainst.get(client)).toBeInstanceOf(ResourceLockedError)
    const other = await redlock.acquire(['b'], 20_000)
    await locks.break('b')
    await failure(other.release())
  })

  test('is released once', async () => {
    const lock = await redlock.acquire(['a'], 20_000)
    await lock.release()
    const [stats] = await Promise.all((await failure(lock.release())).attempts)
    expect(stats?.votesAgainst.get(client)?.message).toBe(
      'The operation was applied to: 0 of the 1 requested resources.',
    )
  })

  test.each([[['a']], [['a', 'b']]])('on %j that is released while it is extended: both succeed', async resources => {
    const lock = await redlock.acquire(resources, 20_000)
    const again = new Lock(redlock, resources, lock.value, [], lock.expiration)
    const extending = lock.extend(30_000)
    const releasing = lock.release()
    await failure(again.extend(20_000)) // after the release
    const [extended] = await Promise.all([extending, releasing])
    await failure(extended.release())
    expect(await locks.inspect('a')).toMatchObject({ holders: [] })

    const lost = await redlock.acquire(resources, 20_000)
    await locks.break('a')
    await Promise.all([lost.extend(20_000), lost.release()].map(failure))
  })

  test('can be made again from its value, in the same process', async () => {
    const { value, expiration } = await redlock.acquire(['a'], 20_000)
    const again = new Lock(redlock, ['a'], value, [], expiration)
    expect(() => again.token).toThrow('was not acquired')
    await again.release()
    expect(await locks.inspect('a')).toMatchObject({ holders: [] })
    await failure(new Lock(redlock, ['a'], 'unknown', [], expiration).release())
  })
})

describe('a duration', () => {
  test('must be a whole number', async () => {
    const message = 'Duration must be an integer value in milliseconds.'
    for (const duration of [0.5, NaN]) await expect(redlock.acquire(['a'], duration)).rejects.toThrow(message)
    await expect(redlock.using(['a'], 0.5, async () => {})).rejects.toThrow(message)
    const lock = await redlock.acquire(['a'], 20_000)
    await expect(lock.extend(0.5)).rejects.toThrow(message)
  })

  test.each([0, -5, Infinity])('of %d ms is refused, as Redis does', async duration => {
    const settings = { automaticExtensionThreshold: -1_000, retryCount: 2 }
    expect((await failure(redlock.acquire(['b'], duration, settings))).attempts).toHaveLength(3)
    await failure(redlock.using(['b'], duration, settings, async () => {}))
    const lock = await redlock.acquire(['a'], 20_000)
    const { cause } = await failure(lock.extend(duration))
    expect(LeaseError.is(cause, 'INVALID_ARGUMENT')).toBe(true)
    await lock.extend(20_000)
  })

  test('that is short is raised to the shortest ttl, and the expiration says what was asked', async () => {
    // A request gets a third of so short a ttl.
    const lock = await until('it is acquired', () => redlock.acquire(['a'], 20))
    expect(lock.lease).toMatchObject({ ttl: 100 })
    expect(lock.expiration).toBeLessThanOrEqual(Date.now() + 20)
  })

  test('may be 28,000 years', async () => {
    const years = Math.floor(Number.MAX_SAFE_INTEGER / 10)
    const lock = await redlock.acquire(['a'], years)
    expect(lock.lease).toMatchObject({ ttl: LONGEST_TTL })
    expect(lock.expiration).toBeGreaterThan(0.9 * years)
    await (await lock.extend(3 * years)).release()
    expect(await locks.inspect('a')).toMatchObject({ holders: [] })
  })
})

describe('waiting', () => {
  test.each([-1, Infinity])('%d times ends with the release', async retryCount => {
    const lock = await redlock.acquire(['a'], 60_000)
    const waiting = redlock.acquire(['a'], 20_000, { retryCount, retryDelay: 0 })
    await until('it waits', async () => (await locks.inspect('a')).waiters.length === 1)
    await lock.release()
    expect((await waiting).token).toBeGreaterThan(lock.token)
  })

  test('does not retry what is wrong', async () => {
    await expect(redlock.acquire(['\n'], 1_000)).rejects.toThrow(/control character/)
    await expect(redlock.acquire([], 1_000)).rejects.toThrow(/at least one/)
  })
})

describe('using', () => {
  const early = { automaticExtensionThreshold: 2_500 }

  test('renews the lock while the routine runs, and releases it', async () => {
    const result = await redlock.using(['a', 'b'], 3_000, early, async (signal, context) => {
      await until('it was renewed three times', () => context.extensions >= 3)
      expect(context.lock.expiration).toBeGreaterThan(Date.now())
      expect(signal.aborted).toBe(false)
      expect(signal.error).toBeUndefined()
      return 'done'
    })
    expect(result).toBe('done')
    expect(await locks.inspect('a')).toMatchObject({ holders: [] })
    expect(await locks.inspect('b')).toMatchObject({ holders: [] })
  })

  test('aborts the signal when the lock is lost, and rejects', async () => {
    let reason: Error | undefined
    const error = await failure(
      redlock.using(['a'], 3_000, early, async signal => {
        await locks.break('a')
        await until('it is lost', () => signal.aborted)
        expect(() => signal.throwIfAborted()).toThrow(expect.objectContaining({ name: 'AbortError' }))
        reason = signal.error
      }),
    )
    expect(reason).toBeInstanceOf(ExecutionError)
    expect(LeaseError.from(error)?.code).toBe('LEASE_LOST')
  })

  test('notices a loss after the event loop was blocked', async () => {
    const late = { automaticExtensionThreshold: 500 }
    const routine = redlock.using(['a'], 1_000, late, async signal => {
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 1_200)
      return signal.aborted
    })
    await failure(routine)
  })

  test('rejects with the error of the routine, and releases', async () => {
    const routine = redlock.using(['a'], 1_000, async () => {
      throw new Error('of the routine')
    })
    await expect(routine).rejects.toThrow('of the routine')
    expect(await locks.inspect('a')).toMatchObject({ holders: [] })
  })

  test('refuses a duration that is too short for the threshold', async () => {
    await expect(redlock.using(['a'], 500, async () => {})).rejects.toThrow(/at least 100ms greater/)
    await expect(redlock.using(['a'], 500, {})).rejects.toThrow('INVARIANT: routine is not a function.')
  })
})

describe('a Redlock', () => {
  test('is the default export and a named one', () => {
    expect(Default).toBe(Redlock)
    expect(redlock.settings).toEqual({
      driftFactor: 0.01,
      retryCount: 10,
      retryDelay: 200,
      retryJitter: 100,
      automaticExtensionThreshold: 500,
      db: 0,
    })
    expect(new Redlock([client], { db: 16, retryCount: -1 }).settings).toMatchObject({ db: 0, retryCount: -1 })
  })

  test('needs a client, and refuses scripts', () => {
    expect(() => new Redlock([])).toThrow('Redlock must be instantiated with at least one redis client.')
    expect(() => new Redlock([client], {}, { acquireScript: 'return 1' })).toThrow(/scripts are not supported/)
    new Redlock([client], {}, { acquireScript: undefined })
  })

  test('has types for what programs of both libraries write', () => {
    const settings: Settings = { retryCount: 3 }
    expect(new Redlock([client], settings).settings.retryDelay.toFixed()).toBe('200')
    const ofRedlock5: ExecutionResult = { attempts: [] }
    const ofSesamecare: ExecutionResult = { attempts: [], start: 0 }
    expect(ofSesamecare).toMatchObject(ofRedlock5)
  })

  test('emits an error when a call fails', async () => {
    const errors: Error[] = []
    redlock.on('error', error => errors.push(error))
    await locks.acquire('a')
    await failure(redlock.acquire(['a'], 20_000, once))
    expect(errors).toEqual([expect.any(ResourceLockedError)])
  })

  test('shares its connections with others over the same client', async () => {
    await redlock.acquire(['a'], 1_000)
    const before = await totalConnections(server)
    for (let request = 0; request < 5; request += 1) await new Redlock([client]).acquire([`r${request}`], 1_000)
    // Each look at the server is one, and the subscription of the store may follow.
    expect((await totalConnections(server)) - before).toBeLessThanOrEqual(2)
  })

  test('closes its connections at quit, once nothing is held', async () => {
    const own = new Redis(server.port, server.host)
    const before = await connectionsOf(server)
    const other = new Redlock([own], { prefix: 'other' })
    const lock = await other.acquire(['a'], 20_000)
    await other.quit()
    expect(LeaseError.from(await failure(other.acquire(['b'], 20_000, once)))?.code).toBe('CLOSED')
    await lock.release()
    await until('its connections are closed', async () => (await connectionsOf(server)) < before)
  })

  test('locks in the database that its client has selected before the first lock', async () => {
    await client.select(2)
    await redlock.acquire(['a'], 20_000)
    expect(await client.dbsize()).toBeGreaterThan(0)
    await client.select(0)
    expect(await client.dbsize()).toBe(0)
  })

  test('locks in the database of its settings', async () => {
    await new Redlock([client], { db: 3 }).acquire(['a'], 20_000)
    expect(await client.dbsize()).toBe(0)
    await client.select(3)
    expect(await client.dbsize()).toBeGreaterThan(0)
  })
})

async function connectionsOf(of: RedisServer): Promise<number> {
  return Number((await of.info('clients')).connected_clients)
}

/** Connections since its start. */
async function totalConnections(of: RedisServer): Promise<number> {
  return Number((await of.info('stats')).total_connections_received)
}

import { Redis } from 'ioredis'
import { afterAll, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest'
import { type RedisServer, startRedis } from '../../lab/servers/redis.ts'
import { until } from '../../lab/servers/until.ts'
import { StoreLocks } from '../../src/create-locks.ts'
import { createLocks, LeaseError, type Locks } from '../../src/index.ts'
import { redis } from '../../src/stores/redis/index.ts'
import { follow, lost, refused, stage } from '../../test/scripted-store.ts'
import { Alongside } from './alongside.ts'
import { locksOf, type Opening, type SharedLocks } from './clients.ts'
import { OldLocks } from './old-locks.ts'

const once = { wait: 0 }
/** Renewed after a second. A request has as long, on a machine that stops for half of it. */
const renewed = { ...once, ttl: 3_000 }

let servers: RedisServer[]
let clients: Redis[]
const opened = new Set<SharedLocks>()

beforeAll(async () => {
  servers = await Promise.all([startRedis(), startRedis(), startRedis()])
})
afterAll(() => Promise.all(servers.map(server => server.stop())))

beforeEach(async () => {
  await Promise.all(servers.map(server => server.call('FLUSHALL')))
  clients = servers.map(({ port, host }) => new Redis(port, host))
  return async () => {
    await Promise.all(Array.from(opened, ({ locks }) => locks.close({ grace: 0 })))
    opened.clear()
    await Promise.all(clients.map(client => client.quit()))
  }
})

function open(servers: number, opening: Partial<Opening>): Locks {
  const shared = locksOf(clients.slice(0, servers), {
    trustRestarted: servers > 1 || undefined,
    nodeTimeout: servers > 1 ? 3_000 : undefined, // a busy machine may need longer than 50 ms
    ...opening,
  })
  opened.add(shared)
  return shared.locks
}

/** As the old libraries do. Answers how many servers granted it. */
async function lockOld(key: string, servers: number, ttl = 60_000): Promise<number> {
  const chosen = clients.slice(0, servers)
  const granted = await Promise.all(chosen.map(client => client.set(key, 'old', 'PX', ttl, 'NX')))
  return granted.filter(answer => answer === 'OK').length
}

async function unlockOld(key: string): Promise<void> {
  for (const client of clients) if ((await client.get(key)) === 'old') await client.del(key)
}

async function holdersOf(key: string): Promise<(string | null)[]> {
  return Promise.all(clients.map(client => client.get(key)))
}

describe.each([1, 3])('over %d servers, a lease', count => {
  let both: Locks

  beforeEach(() => {
    both = open(count, { alongside: true })
  })

  test('holds the old lock as well, and releases it', async () => {
    const lease = await both.acquire('a', once)
    expect(await lockOld('a', count)).toBe(0)
    expect(await clients[0]?.pttl('a')).toBeLessThanOrEqual(lease.ttl)
    await lease.release()
    await until('it is free', async () => (await holdersOf('a')).every(value => value === null))
    expect(await lockOld('a', count)).toBe(count)
  })

  test('waits for the old lock, and shows that it does', async () => {
    await lockOld('a', count)
    const waiting = both.acquire('a', { wait: 50_000, note: 'mine' })
    await until('it shows that it waits', async () =>
      (await both.inspect('a')).holders[0]?.note.startsWith('waits for'),
    )
    await expect(both.acquire('b', once)).resolves.toBeDefined()
    await unlockOld('a')
    await waiting
    expect(await both.inspect('a')).toMatchObject({ holders: [{ note: 'mine' }] })
    expect(await lockOld('a', count)).toBe(0)
  })

  test('that does not wait for the old lock leaves nothing behind', async () => {
    await lockOld('a', count, 60_000)
    expect(await both.tryAcquire('a')).toBeUndefined()
    expect(await both.inspect('a')).toMatchObject({ holders: [] })
    const error = await both.acquire('a', { wait: 1_000 }).catch(reason => reason)
    expect(LeaseError.is(error, 'BUSY')).toBe(true)
    expect(error.message).toMatch(/held by a process of the old library, for another \d+ ms/)
    await until('its lease is withdrawn', async () => !(await both.inspect('a')).holders[0])
  })

  test('extends the old lock with each renewal', async () => {
    const lease = await both.acquire('a', renewed)
    const end = (): number => performance.now() + lease.remaining
    const before = end()
    await until('it was renewed', () => end() > before + 100)
    await lease.extend(60_000)
    expect(await clients[0]?.pttl('a')).toBeGreaterThan(10_000)
  })

  test('is lost once the old lock is missing, which is not set again', async () => {
    const lease = await both.acquire('a', renewed)
    await Promise.all(clients.map(client => client.del('a')))
    await lease.ended
    expect(lease.signal.reason).toMatchObject({ code: 'LEASE_LOST' })
    expect(await holdersOf('a')).toEqual([null, null, null])
    expect(await lockOld('a', count)).toBe(count)
    await until('the lease is withdrawn', async () => !(await both.inspect('a')).holders[0])
  })

  test('is lost once a process of the old library has the old lock', async () => {
    const lease = await both.acquire('a', renewed)
    await Promise.all(clients.slice(0, count).map(client => client.set('a', 'old')))
    await lease.ended
    expect((await holdersOf('a')).slice(0, count)).toEqual(clients.slice(0, count).map(() => 'old'))
  })

  test('that was broken gives the old lock back', async () => {
    const lease = await both.acquire('a', renewed)
    await both.break('a')
    await lease.ended
    await until('the old lock is free', async () => (await holdersOf('a')).every(value => value === null))
  })

  test('of a process without the old locks is refused while one is held', async () => {
    const alone = open(count, {})
    await lockOld('a', count)
    expect(await alone.tryAcquire('a')).toBeUndefined()
    expect(await alone.inspect('a')).toMatchObject({ holders: [] })
    const waiting = alone.acquire('a', { wait: 50_000 })
    await until('it shows that it waits', async () =>
      (await alone.inspect('a')).holders[0]?.note.startsWith('waits for'),
    )
    await unlockOld('a')
    const lease = await waiting
    expect(await holdersOf('a')).toEqual([null, null, null])
    expect(await both.tryAcquire('a')).toBeUndefined()
    await lease.release()
  })

  test('of a semaphore waits for the old lock of its name', async () => {
    await lockOld('a', count)
    const one = both.semaphore('a', { limit: 1 })
    expect(await one.tryAcquire()).toBeUndefined()
    await unlockOld('a')
    await one.acquire(once)
    expect(await lockOld('a', count)).toBe(0)
  })

  test('of a semaphore is also granted to a call that waits', async () => {
    const { name } = await both.semaphore('a', { limit: 2 }).acquire({ wait: 20_000 })
    expect(await lockOld(name, count)).toBeLessThan(count / 2)
  })

  test('of a semaphore that shares no name with the old library is an ordinary one', async () => {
    await lockOld('a', count)
    await open(count, { isShared: true }).semaphore('a', { limit: 2 }).acquire(once)
  })
})

describe('over three servers', () => {
  test('a minority of the old lock is given back', async () => {
    const both = open(3, { alongside: true })
    await lockOld('a', 2)
    expect(await both.tryAcquire('a')).toBeUndefined()
    await until('nothing is left', async () => (await clients[2]?.get('a')) === null)
  })

  test('a minority of the old lock is given back by a claim that goes on waiting', async () => {
    await lockOld('a', 2)
    const { signal } = new AbortController()
    expect(await new OldLocks(clients, 0).acquire('a', 'mine', 60_000, signal)).toMatchObject({
      remaining: expect.any(Number),
    })
    await until('nothing is left', async () => (await clients[2]?.get('a')) === null)
  })

  test('a minority of the old lock refuses nothing', async () => {
    await lockOld('a', 1)
    const alone = await open(3, {}).acquire('a', once)
    await alone.release()
    await open(3, { alongside: true }).acquire('a', once)
    expect(await clients[0]?.get('a')).toBe('old')
  })

  test('a minority of the old lock that is lost changes nothing', async () => {
    const both = open(3, { alongside: true })
    const lease = await both.acquire('a', once)
    await clients[0]?.del('a')
    await lease.extend()
    expect(await clients[0]?.get('a')).toBeNull()
    await lease.release()
  })

  test('a server that has just started does not vote for the old lock', async () => {
    const { signal } = new AbortController()
    const cautious = new OldLocks(clients, 1e9)
    await expect(cautious.acquire('a', 'mine', 1_000, signal)).rejects.toThrow('may have forgotten locks')
    await expect(cautious.look('a', signal)).rejects.toMatchObject({ code: 'STORE_UNAVAILABLE', retryable: true })
    expect(await holdersOf('a')).toEqual([null, null, null])
    await lockOld('a', 2)
    expect(await cautious.look('a', signal)).toMatchObject({ remaining: expect.any(Number) })
  })

  test('a majority is enough while a server is down', async () => {
    const [first, second] = clients as [Redis, Redis]
    const down = new Redis(1, '127.0.0.1', { lazyConnect: true, retryStrategy: null }).on('error', () => {})
    const { signal } = new AbortController()
    const old = new OldLocks([first, second, down], 0)
    expect(await old.acquire('a', 'mine', 60_000, signal)).toBeUndefined()
    expect(await old.acquire('a', 'other', 60_000, signal)).toMatchObject({ remaining: expect.any(Number) })
    expect(await old.extend('a', 'mine', 60_000, signal)).toBeUndefined()
    await second.del('a')
    await expect(old.extend('a', 'mine', 60_000, signal)).rejects.toThrow('too few servers answered')
    await old.release('a', 'mine', signal)
    expect(await first.get('a')).toBeNull()
  })
})

describe('a loss that a renewal finds', () => {
  const { promise: never } = Promise.withResolvers<never>()
  const foreign = { remaining: 100 }

  /** The old locks, as a test wants them. */
  class ScriptedOldLocks extends OldLocks {
    override acquire = vi.fn<OldLocks['acquire']>(async () => undefined)
    override extend = vi.fn<OldLocks['extend']>(async () => undefined)
    override release = vi.fn<OldLocks['release']>(async () => {})

    constructor() {
      super([], 0)
    }
  }

  /** A lease for a second, by a virtual clock. A renewal has a third of that. */
  async function held() {
    const { clock, store } = stage()
    const old = new ScriptedOldLocks()
    const both = new Alongside(store, old, { prefix: 'holdfast', mode: 'hold', close: () => {} })
    const locks = new StoreLocks(both, {}, { clock, random: () => 0.5 })
    const lease = await locks.acquire('a', { ...once, ttl: 1_000, heartbeat: false })
    return { clock, store, old, lease }
  }

  test.each(['old lock', 'lease'])('of the %s is known before anything is released', async what => {
    const { clock, store, old, lease } = await held()
    const known: boolean[] = []
    const release = (): Promise<never> => {
      known.push(lease.signal.aborted)
      return never
    }
    old.release.mockImplementation(release)
    store.rule('release', release)
    if (what === 'lease') store.rule('renew', async () => undefined)
    else old.extend.mockResolvedValue(foreign)
    const extended = follow(lease.extend())
    await clock.advance(0)
    expect(known).toEqual([true, true])
    expect(extended.settled).toBe(false) // the loss is known without the answer
  })

  test.each([
    ['fails', refused],
    ['is not answered', lost],
  ])('of the old lock is known at once while the renewal of the lease %s', async (_, rule) => {
    const { clock, store, old, lease } = await held()
    store.rule('renew', rule)
    old.extend.mockResolvedValue(foreign)
    follow(lease.extend())
    await clock.advance(0)
    expect(lease.signal.reason).toMatchObject({ code: 'LEASE_LOST' })
    expect(old.release).toHaveBeenCalledOnce()
    expect(store.count('release')).toBe(1)
  })

  test('is known although the request was given up', async () => {
    const { clock, old, lease } = await held()
    const { promise: answer, resolve } = Promise.withResolvers<typeof foreign>()
    old.extend.mockReturnValue(answer)
    const extended = follow(lease.extend())
    await clock.advance(400)
    expect(extended.error).toMatchObject({ code: 'OUTCOME_UNKNOWN' })
    expect(lease.signal.aborted).toBe(false)
    resolve(foreign)
    await clock.advance(0)
    expect(lease.signal.aborted).toBe(true)
    expect(old.release).toHaveBeenCalledOnce()
  })

  test('is reported once, also if the store finds it by itself, and not after a release', async () => {
    const { store, old, lease } = await held()
    const [report] = store.notifyLoss.values()
    report?.()
    expect(lease.signal.aborted).toBe(true)
    expect(store.notifyLoss.size).toBe(0)
    const next = await held()
    await next.lease.release()
    expect(next.store.notifyLoss.size).toBe(0)
    expect(old.release).not.toHaveBeenCalled()
  })

  test('is left to the core where no old lock is held', () => {
    const { server } = stage()
    const looking = new Alongside(server, new ScriptedOldLocks(), { prefix: 'holdfast', mode: 'look', close: () => {} })
    expect(looking.onLoss).toBeUndefined()
  })
})

test('a client that has ended is not a loss before the deadline', async () => {
  const [client] = clients as [Redis]
  const shared = locksOf([client], { alongside: true })
  const lease = await shared.locks.acquire('a', { ...once, ttl: 60_000 })
  const used = shared.use(lease.ended)
  await client.quit()
  await until('the client has ended', () => client.status === 'end')
  await expect(lease.extend()).rejects.toMatchObject({ code: 'STORE_UNAVAILABLE' })
  expect(lease.signal.aborted).toBe(false)
  await lease.release()
  await used
  await client.connect()
})

test('the old lock is in the database of the settings, over a connection that is closed with the locks', async () => {
  const [server] = servers as [RedisServer]
  const before = Number((await server.info('clients')).connected_clients)
  const locks = open(1, { alongside: true, db: 3 })
  await locks.acquire('a', once)
  expect(await clients[0]?.get('a')).toBeNull()
  await clients[0]?.select(3)
  expect(await clients[0]?.get('a')).not.toBeNull()
  await locks.close({ grace: 0 })
  await until('it is closed', async () => Number((await server.info('clients')).connected_clients) <= before)
})

test('a program that has moved on to holdfast excludes those that hold both', async () => {
  const both = open(1, { alongside: true })
  await both.acquire('a', once)
  const locks = createLocks(redis(clients[0] as Redis))
  expect(await locks.tryAcquire('a')).toBeUndefined()
  await locks.close()
})

/** Several claims that hold a name together: what Redis keeps of them, and what it may lose. */
import { Redis } from 'ioredis'
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest'
import { type ShiftedClock, startClock } from '../../../../lab/servers/clock.ts'
import { type RedisServer, startRedis } from '../../../../lab/servers/redis.ts'
import { until } from '../../../../lab/servers/until.ts'
import { monitor } from '../../../../test/monitor.ts'
import { type Claim, LARGEST_LIMIT, type Store } from '../../../contract/store.ts'
import { createLocks } from '../../../index.ts'
import { script } from '../verbs.ts'
import { outcome } from './outcome.ts'
import { acquire, claimOf, hold, look, signal, storeOf } from './support.ts'

const KEY = 'holdfast:{:a}'
const TTL = 60_000

let clock: ShiftedClock
let server: RedisServer
let client: Redis
let store: Store

beforeAll(async () => {
  clock = startClock()
  server = await startRedis({ clock })
})
afterAll(async () => {
  await server.stop()
  clock.stop()
})
beforeEach(async () => {
  client = new Redis(server.port)
  await client.flushall()
  store = storeOf(client)
})
afterEach(async () => {
  await store[Symbol.asyncDispose]()
  client.disconnect()
})

function permitOf(claim: Partial<Claim> = {}): Claim {
  return claimOf('a', { limit: 4, ttl: TTL, ...claim })
}

function readerOf(): Claim {
  return claimOf('a', { limit: LARGEST_LIMIT, ttl: TTL })
}

/** What is held, by slot. */
async function slots(): Promise<unknown[]> {
  return (await look(store, { name: 'a' })).map(({ owner, slots }) => [owner, slots])
}

async function holdAll(...claims: readonly Claim[]): Promise<void> {
  for (const claim of claims) await hold(store, claim)
}

/** The commands that scripts carried out while `work` ran, without reads of the time. */
async function commandsDuring(work: () => Promise<unknown>): Promise<string[]> {
  using watcher = await monitor(server)
  await work()
  const all = (await watcher.all()).filter(({ command, inScript }) => inScript && command !== 'time')
  return all.map(({ command, args }) => `${command} ${args[0]?.replace(KEY, '').replace(/[\da-f]{32}/, 'ID')}`.trim())
}

test('writes the keys that README.md describes, for as long as the longest lease, and leaves none', async () => {
  const one = permitOf({ owner: 'one', note: 'n', ttl: 5_000 })
  const first = await hold(store, one)
  expect(await client.get(KEY)).toMatch(new RegExp(`^1 \\d{13} held 0 ${first} 5000/4/1 ${one.id} \\["one","n"\\]$`))
  const two = permitOf({ owner: 'two', units: 2, ttl: 20_000 })
  const second = await hold(store, two)
  expect(await client.get(KEY)).toMatch(new RegExp(`^1 \\d{13} many 0 ${second} 20000 ${first} 0 3 4x2, 7 *$`))
  expect(await client.hgetall(`${KEY}:claim`)).toEqual({
    '#': String(first),
    [one.id]: `h ${first} ${first} 5000 4 0 ["one","n"]`,
    [two.id]: `h ${first} ${second} 20000 4 1,2 ["two",""]`,
  })
  for (const kind of ['', ':line', ':claim']) expect(await client.pttl(KEY + kind), kind).toBeGreaterThan(20_000)
  for (const claim of [one, two]) expect(await store.release(claim, signal)).toBe('released')
  expect(await client.keys('*')).toEqual(['holdfast:token'])
})

test('a short lease beside a long one ends by itself, and frees its slots only', async () => {
  const short = permitOf({ owner: 'short', ttl: 1_500 })
  await holdAll(permitOf({ owner: 'long' }), short, permitOf({ owner: 'other' }))
  await until('it has ended', async () => (await slots()).length === 2)
  expect(await store.renew(short, signal)).toBeUndefined()
  await hold(store, permitOf({ owner: 'next' }))
  expect(await slots()).toEqual([
    ['long', [0]],
    ['next', [1]],
    ['other', [2]],
  ])
})

test.each([':line', ':claim'])(
  'without its members (%s) a name counts as held until the last of them ends',
  async kind => {
    const [one, two] = [permitOf({ ttl: 3_000 }), permitOf({ ttl: 1_500 })]
    await holdAll(one, two)
    await client.del(KEY + kind)
    expect(await acquire(store, permitOf())).toMatchObject({ held: false })
    expect(await store.renew(one, signal)).toBeUndefined()
    expect(await look(store, { name: 'a' })).toMatchObject([{ state: 'held' }])
    await until('it is free', async () => (await acquire(store, permitOf())).held)
  },
)

test('break ends a lease whose members are lost', async () => {
  await holdAll(permitOf(), permitOf())
  await client.del(`${KEY}:line`)
  expect(await store.break('a', { by: 'test' }, signal)).toBeTypeOf('bigint')
  await hold(store, claimOf('a'))
})

test('members of an earlier generation do not count', async () => {
  const [one, two] = [permitOf({ owner: 'one' }), permitOf({ owner: 'two' })]
  await holdAll(one, two)
  await client.del(KEY)
  await holdAll(permitOf({ owner: 'three' }), permitOf({ owner: 'four' }))
  for (const claim of [one, two]) expect(await store.renew(claim, signal)).toBeUndefined()
  expect(await store.annotate(one, signal)).toBe(false)
  expect(await store.release(two, signal)).toBe('gone')
  expect(await slots()).toEqual([
    ['three', [0]],
    ['four', [1]],
  ])
})

test('after the clock was set back, each member has at most its own ttl left', async () => {
  await holdAll(permitOf({ ttl: 3_000 }), permitOf({ ttl: 2_000 }))
  clock.jumpWall(-3_600_000)
  expect(await acquire(store, claimOf('a'))).toMatchObject({ held: false, holder: { remaining: 3_000 } })
  const left = (await look(store, { name: 'a' })).map(({ remaining }) => remaining)
  expect(left[0]).toBeLessThanOrEqual(3_000)
  expect(left[1]).toBeLessThanOrEqual(2_000)
  expect(await store.break('a', { by: 'test' }, signal)).toBeTypeOf('bigint')
})

test('the key of the positions lasts as long as the holders: a waiter that was passed has no other', async () => {
  const [one, two] = [1, 2].map(() => permitOf({ limit: 2, ttl: 60_000 })) as [Claim, Claim]
  await holdAll(one, two)
  const [passed, next] = [1, 2].map(() => permitOf({ limit: 2, ttl: 5_000, queue: true })) as [Claim, Claim]
  for (const claim of [passed, next]) expect(await acquire(store, claim)).toMatchObject({ held: false })
  await store.release(two, signal)
  await until('the first is passed', async () => (await acquire(store, next)).held)
  expect(await client.pttl(`${KEY}:lapse`)).toBeGreaterThan(30_000)
})

test('a dead writer does not block readers once the key of the positions has ended', async () => {
  await holdAll(readerOf(), readerOf())
  await acquire(store, claimOf('a', { queue: true }))
  await client.del(`${KEY}:lapse`) // as Redis does when nobody asks for 7 s
  await hold(store, readerOf())
  expect((await look(store, { name: 'a' })).map(({ state }) => state)).toEqual(['held', 'held', 'held'])
})

test('a crowd of dead waiters does not count once the key of their positions has ended', async () => {
  await holdAll(readerOf(), readerOf())
  await Promise.all(Array.from({ length: 1_001 }, () => acquire(store, claimOf('a', { queue: true }))))
  await client.del(`${KEY}:lapse`)
  const writer = claimOf('a', { queue: true })
  expect(await acquire(store, writer)).toMatchObject({ held: false, ahead: 0 })
})

test('after the clock was set back, a dead writer keeps its position for 5 s at most', async () => {
  await holdAll(readerOf(), readerOf())
  await acquire(store, claimOf('a', { queue: true }))
  clock.jumpWall(-10_000) // less than the leases have lasted
  expect(await acquire(store, readerOf())).toMatchObject({ held: false })
  const [writer] = (await look(store, { name: 'a' })).filter(({ state }) => state === 'waiting')
  expect(writer?.remaining).toBeLessThanOrEqual(5_000)
})

test('after the clock was set back, the second waiter passes the first after its grace period', async () => {
  const [one, two, first, second] = [
    permitOf(),
    permitOf({ units: 3 }),
    permitOf({ queue: true }),
    permitOf({ queue: true }),
  ]
  await holdAll(one, two)
  for (const claim of [first, second]) expect(await acquire(store, claim)).toMatchObject({ held: false })
  await store.release(two, signal)
  clock.jumpWall(-30_000)
  await until('it is granted', async () => (await acquire(store, second)).held)
  expect((await look(store, { name: 'a' })).map(({ state }) => state)).toEqual(['held', 'held', 'waiting'])
})

test('a second waiter that does not fit does not ask every millisecond once it may pass the first', async () => {
  const one = permitOf()
  await holdAll(one, permitOf({ units: 3 }))
  const second = permitOf({ units: 2, queue: true })
  for (const claim of [permitOf({ queue: true }), second]) await acquire(store, claim)
  await store.release(one, signal)
  clock.jumpWall(200)
  expect(await acquire(store, second)).toMatchObject({ held: false, retryAfter: expect.toSatisfy(delay => delay > 10) })
})

test('a claim with a smaller limit is refused while a higher slot is in use, also if enough are free', async () => {
  const all = Array.from({ length: 7 }, () => permitOf({ limit: 8 }))
  await holdAll(...all)
  for (const claim of all.slice(0, -1)) await store.release(claim, signal)
  expect(await acquire(store, permitOf({ limit: 6 }))).toMatchObject({ held: false })
  expect(await acquire(store, permitOf({ limit: 7 }))).toMatchObject({ held: true, slots: [0] })
  expect(await acquire(store, permitOf({ limit: 8, units: 6 }))).toMatchObject({ held: false })
  expect(await acquire(store, permitOf({ limit: 8, units: 5 }))).toMatchObject({ held: true, slots: [1, 2, 3, 4, 5] })
})

test('what one of 1,000 readers asks takes Redis few commands', async () => {
  const readers = Array.from({ length: 1_000 }, readerOf)
  const cost = async (): Promise<string[]> => {
    const next = readerOf()
    return commandsDuring(async () => {
      await hold(store, next)
      await store.renew(next, signal)
      await store.release(next, signal)
      await acquire(store, claimOf('a'))
    })
  }
  await Promise.all(readers.map(claim => hold(store, claim)))
  expect((await cost()).length).toBeLessThan(55)
  const found = await look(store, { name: 'a' })
  expect(found.map(({ slots }) => slots?.[0])).toEqual(readers.map((_, slot) => slot))
})

test('a renewal touches only its member, and the end of the group', async () => {
  const own = permitOf()
  await holdAll(own, permitOf())
  const commands = await commandsDuring(() => store.renew(own, signal))
  const reads = ['get', 'hget', 'zrevrangebyscore', 'pttl']
  expect(commands.filter(command => !reads.includes(command.split(' ')[0] ?? ''))).toEqual([
    'zrem :lapse', // of nobody, so that a full server does not refuse what follows
    'zadd :line',
    'setrange',
    'pexpire',
  ])
})

test('without memory it renews and releases permits, and grants all permits or none', async () => {
  await using full = await startRedis()
  const locks = createLocks(storeOf(new Redis({ port: full.port, lazyConnect: true })), { ttl: TTL })
  const held = locks.semaphore('held', { limit: 3 })
  const other = locks.semaphore('other', { limit: 3 })
  const permit = await held.acquire({ permits: 2 })
  await full.call('CONFIG', 'SET', 'maxmemory', '1')
  const refusal = { code: 'STORE_UNAVAILABLE', retryable: true }
  await expect(other.tryAcquire()).rejects.toMatchObject(refusal)
  await expect(other.tryAcquire({ permits: 2 })).rejects.toMatchObject(refusal)
  await expect(held.tryAcquire({ permits: 1 })).rejects.toMatchObject(refusal)
  expect(await permit.extend()).toBeGreaterThan(0)
  expect(await permit.release()).toBe('released')
  const waiting = other.acquire({ permits: 3, wait: TTL })
  await full.call('CONFIG', 'SET', 'maxmemory', '0')
  expect((await waiting).slots).toEqual([0, 1, 2])
  for (const _ of [1, 2, 3]) expect(await held.tryAcquire()).toBeDefined()
  await locks.close()
})

test('a keep of positions that have all lapsed says when to ask, although the name is free', async () => {
  const id = 'a'.repeat(32)
  const keys = ['', ':line', ':lapse', ':claim', ':gone:-'].map(suffix => KEY + suffix)
  const { reply } = await outcome(
    client,
    script.source,
    [...keys, 'holdfast:token'],
    ['-', '0', '0', `keep 1 0 5000 0 0 ${id}`, '-'],
  )
  expect(reply).toEqual([`NOW+0 0 - ${id}`])
})

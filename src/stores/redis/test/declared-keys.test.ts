import { Redis } from 'ioredis'
import { afterAll, beforeAll, beforeEach, expect, test, vi } from 'vitest'
import { type RedisServer, startRedis } from '../../../../lab/servers/redis.ts'
import { until } from '../../../../lab/servers/until.ts'
import { monitor } from '../../../../test/monitor.ts'
import { createLocks, type Locks } from '../../../index.ts'
import { redlock } from '../../redlock/index.ts'
import { acquire, claimOf, hold, signal, storeOf } from './support.ts'

let server: RedisServer
let other: RedisServer

beforeAll(async () => {
  server = await startRedis()
  other = await startRedis()
})
afterAll(() => Promise.all([server.stop(), other.stop()]))
beforeEach(() => server.call('FLUSHALL'))

const WITHOUT_KEYS = ['time', 'publish']

/** The keys that scripts touched and did not declare; and the commands that they used. */
async function undeclared(work: () => Promise<void>): Promise<{ keys: string[]; commands: Set<string> }> {
  const keys: string[] = []
  const commands = new Set<string>()
  let declared: readonly string[] = []
  using watcher = await monitor(server)
  await work()
  for (const { command, args, inScript } of await watcher.all()) {
    if (inScript) {
      commands.add(command)
      const touched = WITHOUT_KEYS.includes(command) ? [] : command === 'mget' ? args : args.slice(0, 1)
      keys.push(...touched.filter(key => !declared.includes(key)).map(key => `${command} ${key}`))
    } else declared = command.startsWith('eval') ? args.slice(2, 2 + Number(args[1])) : []
  }
  return { keys, commands }
}

/** Everything that a store does, with waiters and without. */
async function everything(locks: Locks): Promise<void> {
  const lease = await locks.acquire('a', { note: 'first' })
  await lease.annotate('second')
  await lease.extend()
  expect(await locks.tryAcquire('a')).toBeUndefined()
  const waiting = locks.acquire('a')
  const controller = new AbortController()
  const aborted = locks.acquire('a', { signal: controller.signal }).catch(() => {})
  await until('both wait', async () => (await locks.inspect('a')).waiters.length === 2)
  expect(await locks.tryAcquire('a')).toBeUndefined()
  controller.abort()
  await aborted
  await lease.release()
  await waiting
  expect(await Array.fromAsync(locks.list())).toHaveLength(1)
  const third = locks.acquire('a')
  await until('it waits', async () => (await locks.inspect('a')).waiters.length === 1)
  expect(await locks.break('a')).toBeTypeOf('bigint')
  await (await third).release()
}

test('S10: scripts of redis touch only the keys that they declare', async () => {
  const { keys, commands } = await undeclared(async () => {
    const store = storeOf(new Redis({ port: server.port, lazyConnect: true }))
    await using locks = createLocks(store, { ttl: 10_000 })
    await everything(locks)
    await using another = storeOf(new Redis({ port: server.port, lazyConnect: true }))
    const notifying = claimOf('notifying')
    await hold(store, notifying)
    await acquire(another, claimOf('notifying', { queue: true }))
    await store.release(notifying, signal)
    expect(await store.release(claimOf('unknown'), signal)).toBe('gone')
    const [lapsing, holder] = [claimOf('lapsing', { queue: true, ttl: 1_000 }), claimOf('lapsing')]
    await hold(store, holder)
    await acquire(store, lapsing)
    await until(
      'its place lapses',
      async () => (await acquire(store, claimOf('lapsing', { queue: true }))).held === false,
    )
  })
  expect(keys).toEqual([])
  expect([...commands].sort()).toEqual(
    expect.arrayContaining(['get', 'hdel', 'hmget', 'hset', 'mget', 'publish', 'set', 'setrange', 'zadd', 'zrem']),
  )
})

test('S10: scripts of redlock touch only the keys that they declare', async () => {
  const { keys, commands } = await undeclared(async () => {
    const clients = [server, other].map(({ port }) => new Redis({ port, lazyConnect: true }))
    await using locks = createLocks(redlock(clients, { trustRestarted: true }), { ttl: 10_000 })
    await everything(locks)
  })
  expect(keys).toEqual([])
  expect(commands).toContain('zadd')
})

test('S10: warns if Redis refuses to notify waiters', async () => {
  await using deaf = await startRedis({ users: ['app on >pw ~* resetchannels +@all'] })
  const warnings = vi.spyOn(process, 'emitWarning').mockImplementation(() => {})
  const client = (): Redis => new Redis({ port: deaf.port, username: 'app', password: 'pw', lazyConnect: true })
  await using store = storeOf(client())
  await using another = storeOf(client())
  const holder = claimOf('a')
  await hold(store, holder)
  await acquire(another, claimOf('a', { queue: true }))
  expect(await store.release(holder, signal)).toBe('released')
  expect(warnings.mock.calls).toEqual([
    [expect.stringMatching(/refuses to notify waiters/), { type: 'HoldfastWarning', code: 'HOLDFAST_WAKES' }],
  ])
  warnings.mockRestore()
})

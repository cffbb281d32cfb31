import { Redis } from 'ioredis'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { startClock } from '../../../../lab/servers/clock.ts'
import { startProxy } from '../../../../lab/servers/proxy.ts'
import { type RedisServer, startRedis } from '../../../../lab/servers/redis.ts'
import { until } from '../../../../lab/servers/until.ts'
import { ROOT, scriptNode } from '../../../../test/script-node.ts'
import { createLocks } from '../../../index.ts'
import { claimOf, hold, storeOf } from './support.ts'

let server: RedisServer

beforeAll(async () => {
  server = await startRedis()
})
afterAll(() => server.stop())

/** A program that uses the package from source. */
async function run(program: string, env = {}): Promise<{ code: number | null; stdout: string; stderr: string }> {
  const text = program.replaceAll('PORT', String(server.port)).replaceAll('ROOT', ROOT)
  return scriptNode(['--input-type=module', '--eval', text], { folder: ROOT, env })
}

const setup = {
  ioredis: `
    import { Redis } from 'ioredis'
    const client = new Redis({ port: PORT })
    const end = () => client.quit()`,
  'node-redis': `
    import { createClient } from 'redis'
    const client = await createClient({ socket: { host: '127.0.0.1', port: PORT } }).connect()
    const end = () => client.close()`,
}

describe.each(Object.entries(setup))('%s', (_, start) => {
  test('a program that closes its client, and never its locks, ends', async () => {
    const { code, stdout, stderr } = await run(`
      ${start}
      import { createLocks } from 'ROOT/src/index.ts'
      import { redis } from 'ROOT/src/stores/redis/index.ts'
      const locks = createLocks(redis(client))
      const lease = await locks.acquire('a')
      const waiting = locks.acquire('a')
      setTimeout(() => lease.release(), 50)
      await (await waiting).release()
      await end()
      console.log('ends')`)
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
    expect(stdout).toBe('ends\n')
  })

  test('a program that waits for a lease does not end before', async () => {
    const claim = claimOf('held', { ttl: 2_000 })
    await using store = storeOf(new Redis({ port: server.port, lazyConnect: true }))
    await hold(store, claim)
    const { code, stdout } = await run(`
      ${start}
      import { createLocks } from 'ROOT/src/index.ts'
      import { redis } from 'ROOT/src/stores/redis/index.ts'
      const locks = createLocks(redis(client))
      await end()
      const lease = await locks.acquire('held')
      await lease.release()
      console.log('held')`)
    expect({ code, stdout }).toEqual({ code: 0, stdout: 'held\n' })
  })
})

test('cuts and outages leave no connection, and no listener on the client', async () => {
  await using proxy = await startProxy(server)
  const client = new Redis({ port: proxy.port, lazyConnect: true })
  const listeners = (): number => client.eventNames().reduce((count, event) => count + client.listenerCount(event), 0)
  const before = listeners()
  const locks = createLocks(storeOf(client))
  for (let round = 0; round < 10; round += 1) {
    const lease = await locks.acquire('a')
    const waiting = locks.acquire('a')
    proxy.reset()
    await until('it is released', () =>
      lease.release().then(
        () => true,
        () => false,
      ),
    )
    await (await waiting).release()
  }
  await until('one connection for requests and one for messages are left', () => proxy.connections <= 2)
  expect(listeners()).toBe(before)
  await locks.close()
  await until('none is left', () => proxy.connections === 0)
})

describe('an eviction policy that may drop leases', () => {
  test.each(['allkeys-lru', 'volatile-ttl'])('%s is warned of, once', async maxmemoryPolicy => {
    await using evicting = await startRedis({ maxmemoryPolicy, config: { maxmemory: '100mb' } })
    const warnings = vi.spyOn(process, 'emitWarning').mockImplementation(() => {})
    await using store = storeOf(new Redis({ port: evicting.port, lazyConnect: true }))
    await hold(store, claimOf('a'))
    await hold(store, claimOf('b'))
    await until('it is said', () => warnings.mock.calls.length > 0)
    expect(warnings.mock.calls).toEqual([
      [
        expect.stringMatching(`maxmemory-policy ${maxmemoryPolicy}`),
        { type: 'HoldfastWarning', code: 'HOLDFAST_EVICTION' },
      ],
    ])
    warnings.mockRestore()
  })

  test.each([
    ['noeviction', '100mb', '+@all'],
    ['allkeys-lru', '0', '+@all'],
    ['allkeys-lru', '100mb', '+@all -info'],
  ])('%s with maxmemory %s and %s is not', async (maxmemoryPolicy, maxmemory, rules) => {
    await using quiet = await startRedis({
      maxmemoryPolicy,
      config: { maxmemory },
      users: [`app on >pw ~* &* ${rules}`],
    })
    const warnings = vi.spyOn(process, 'emitWarning').mockImplementation(() => {})
    const client = new Redis({ port: quiet.port, username: 'app', password: 'pw', lazyConnect: true })
    {
      await using store = storeOf(client)
      await hold(store, claimOf('a'))
      await until('it has looked', async () => /cmdstat_info/.test(String(await quiet.call('INFO', 'commandstats'))))
      await hold(store, claimOf('b'))
    }
    expect(warnings).not.toHaveBeenCalled()
    warnings.mockRestore()
  })
})

test('without memory it renews, annotates and releases leases, and refuses new ones for now', async () => {
  await using full = await startRedis()
  await using store = storeOf(new Redis({ port: full.port, lazyConnect: true }))
  const locks = createLocks(store)
  const lease = await locks.acquire('a')
  await full.call('CONFIG', 'SET', 'maxmemory', '1')
  await expect(locks.tryAcquire('b')).rejects.toMatchObject({ code: 'STORE_UNAVAILABLE', retryable: true })
  expect(await lease.extend()).toBeGreaterThan(0)
  expect(await lease.extend(20_000)).toBeGreaterThan(10_000)
  await lease.annotate('so long that its value needs more room')
  await lease.release()
  await full.call('CONFIG', 'SET', 'maxmemory', '0')
  await (await locks.acquire('b')).release()
})

test('a client whose clock is in the year 2100 corrupts no token and loses no lease', async () => {
  using clock = startClock()
  clock.jumpWall(74 * 365 * 86_400_000)
  const { code, stdout } = await run(
    `
      ${setup.ioredis}
      import { createLocks } from 'ROOT/src/index.ts'
      import { redis } from 'ROOT/src/stores/redis/index.ts'
      const locks = createLocks(redis(client), { ttl: 2_000 })
      const lease = await locks.acquire('century')
      await new Promise(resolve => setTimeout(resolve, 2_500)) // more than its ttl
      lease.assertHeld()
      await lease.release()
      await locks.close()
      console.log(new Date().getFullYear(), String(lease.token))
      await end()`,
    clock.env,
  )
  const [year, token = ''] = stdout.trim().split(' ')
  expect({ code, year }).toEqual({ code: 0, year: expect.stringMatching(/^2(099|100)$/) })
  const store = storeOf(new Redis({ port: server.port, lazyConnect: true }))
  const next = await hold(store, claimOf('century'))
  await store[Symbol.asyncDispose]()
  expect(next).toBeGreaterThan(BigInt(token))
  expect(next).toBeLessThan(BigInt(Date.now() + 3_600_000) * 1_000n)
})

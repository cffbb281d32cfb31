import { Redis } from 'ioredis'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { type RedisServer, startRedis } from '../../lab/servers/redis.ts'
import { createLocks } from '../../src/index.ts'
import { redlock } from '../../src/stores/redlock/index.ts'
import { ExecutionError, Redlock } from './index.ts'

let servers: RedisServer[]
let clients: Redis[]

beforeAll(async () => {
  servers = await Promise.all([startRedis(), startRedis(), startRedis()])
})
afterAll(() => Promise.all(servers.map(each => each.stop())))
beforeEach(() => {
  clients = servers.map(({ port, host }) => new Redis(port, host))
})

test('a majority holds the lock, and longer than the longest ttl', async () => {
  await using store = redlock(clients, { trustRestarted: true })
  const several = new Redlock(clients, { trustRestarted: true })
  const lock = await several.acquire(['a', 'b'], 60_000)
  expect((await Promise.all(lock.attempts))[0]).toMatchObject({ membershipSize: 3, quorumSize: 2 })
  await expect(several.acquire(['b'], 60_000, { retryCount: 0 })).rejects.toThrow(ExecutionError)
  const seen = createLocks(store)
  expect(await seen.inspect('a')).toMatchObject({ holders: [{ token: lock.token }] })
  await (await lock.extend(20_000)).release()
  expect(await seen.inspect('a')).toMatchObject({ holders: [] })
  await several.quit()
})

test('servers that have just started grant no lock, and the error says so', async () => {
  const several = new Redlock(clients, { retryCount: 1, retryDelay: 500 })
  const error: unknown = await several.acquire(['a'], 1_000).catch(error => error)
  expect(error).toBeInstanceOf(ExecutionError)
  expect(String((error as ExecutionError).cause)).toMatch(/may have forgotten leases/)
  await several.quit()
})

import { randomUUID } from 'node:crypto'
import { Redis } from 'ioredis'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { type RedisServer, startRedis } from '../../lab/servers/redis.ts'
import { until } from '../../lab/servers/until.ts'
import { ExecutionError, Redlock } from './index.ts'

const once = { retryCount: 0 }

let server: RedisServer
let client: Redis
let alongside: Redlock

beforeAll(async () => {
  server = await startRedis()
})
afterAll(() => server.stop())
beforeEach(() => {
  client = new Redis(server.port, server.host, { keyPrefix: `${randomUUID()}:` })
  alongside = new Redlock([client], { alongside: true })
  return () => alongside.quit()
})

test('a lock holds the keys of redlock as well, and extends them', async () => {
  const lock = await alongside.acquire(['a', 'b'], 20_000)
  expect(await client.exists('a', 'b')).toBe(2)
  expect(await client.get('a')).toBe(lock.value)
  const extended = await lock.extend(60_000)
  expect(extended.value).toBe(lock.value)
  expect(await client.pttl('b')).toBeGreaterThan(30_000)
  await extended.release()
  expect(await client.exists('a', 'b')).toBe(0)
})

test('a lock that redlock holds is refused, by default as well', async () => {
  await client.set('b', 'old', 'PX', 60_000)
  await expect(alongside.acquire(['a', 'b'], 20_000, once)).rejects.toThrow(ExecutionError)
  await expect(new Redlock([client]).acquire(['b'], 20_000, once)).rejects.toThrow(ExecutionError)
  await until('nothing is left behind', async () => (await client.exists('a')) === 0)
})

test('the signal of `using` aborts when redlock has taken the key', async () => {
  const settings = { automaticExtensionThreshold: 100 }
  const using = alongside.using(['a'], 600, settings, async signal => {
    await client.set('a', 'old')
    await until('it is lost', () => signal.aborted)
  })
  await expect(using).rejects.toThrow(ExecutionError)
  expect(await client.get('a')).toBe('old')
})

test('a lock lasts longer than any ttl, with its key', async () => {
  const years = Math.floor(Number.MAX_SAFE_INTEGER / 10)
  const lock = await alongside.acquire(['a'], years)
  expect(await client.pttl('a')).toBeGreaterThan(2 ** 30)
  await lock.release()
})

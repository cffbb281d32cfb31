import { Redis } from 'ioredis'
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest'
import { type RedisServer, startRedis } from '../../lab/servers/redis.ts'
import { until } from '../../lab/servers/until.ts'
import { createLocks, type Locks } from '../create-locks.ts'
import { redis } from '../stores/redis/index.ts'
import { Reader, type Reading } from './reader.ts'

/** So that a search takes longer than a test. */
const MANY = 400_000

let server: RedisServer
beforeAll(async () => {
  server = await startRedis({ config: { 'enable-debug-command': 'local' } })
})
afterAll(() => server.stop())

function opened(): Locks {
  const client = new Redis(server.port, { lazyConnect: true })
  const locks = createLocks(redis(client), { ttl: 60_000 })
  onTestFinished(async () => {
    await locks.close({ grace: 0 })
    client.disconnect()
  })
  return locks
}

async function scans(): Promise<number> {
  return Number(/cmdstat_scan:calls=(\d+)/.exec(String(await server.call('INFO', 'commandstats')))?.[1] ?? 0)
}

function names({ records }: Reading): string[] {
  return records.map(({ name }) => name).sort()
}

test('without keys of others, one look shows all names', async () => {
  const locks = opened()
  await Promise.all(['a', 'b'].map(name => locks.acquire(name)))
  const reading = await new Reader(locks).read()
  expect(names(reading)).toEqual(['a', 'b'])
  expect(reading).toMatchObject({ isPartial: false, search: undefined })
})

test('beside many keys of others, a look does not wait for the search, and names become known meanwhile', async () => {
  await server.call('DEBUG', 'POPULATE', MANY, 'foreign', 1)
  const [locks, other] = [opened(), opened()]
  await other.acquire('known')
  await Promise.all(Array.from({ length: 1_000 }, (_, index) => other.acquire(`job-${index}`)))
  const reader = new Reader(locks)
  const before = await scans()
  const first = await reader.read()
  expect(first).toMatchObject({ isPartial: true, search: { usual: undefined } })
  expect(first.records.length).toBeGreaterThan(0)
  expect(await scans()).toBeLessThan(before + MANY / 1_000 / 2)
  reader.learn('known')
  expect(names(await reader.read())).toContain('known')
  for (let index = 0; index < 6_000; index += 1) reader.learn(`asked-${index}`)
  expect(names(await reader.read()), 'whatever names a viewer asks for').toEqual(expect.arrayContaining(names(first)))
  await until('the search goes on', async () => (await scans()) > before + 12)
  reader.reset()
  const after = await scans()
  await reader.read()
  reader.reset()
  expect(await scans()).toBeLessThanOrEqual(after + 12)
})

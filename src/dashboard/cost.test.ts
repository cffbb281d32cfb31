import { Redis } from 'ioredis'
import { expect, onTestFinished, test } from 'vitest'
import { startPostgres } from '../../lab/servers/postgres.ts'
import { startProxy } from '../../lab/servers/proxy.ts'
import { startRedis } from '../../lab/servers/redis.ts'
import { until } from '../../lab/servers/until.ts'
import { createLocks } from '../create-locks.ts'
import { connect, migrate } from '../index.ts'
import { redis } from '../stores/redis/index.ts'
import { Cost } from './cost.ts'
import type { Readable } from './reader.ts'
import { type Look, Survey } from './survey.ts'

/** The pause after three looks of the same duration, requests and records. */
function pause(duration: number, requests: number | undefined, records: number): number {
  const cost = new Cost()
  for (let looks = 0; looks < 3; looks += 1) cost.add({ duration, requests, records })
  return cost.pause
}

test('the store has 199 times as long to rest as a look took, or 50 ms for each request', () => {
  expect(pause(10, undefined, 0)).toBe(2_000)
  expect(pause(300, 6, 200)).toBe(1_500)
  expect(pause(300, 90, 5_000)).toBe(14_500)
  expect(pause(20, 90, 5_000), 'what is less').toBe(4_000)
})

test('nothing is known before three looks, of which the cheapest counts', () => {
  const cost = new Cost()
  for (const duration of [900, 30]) cost.add({ duration, requests: undefined, records: 0 })
  expect(cost.pause).toBe(0)
  cost.add({ duration: 900, requests: undefined, records: 0 })
  expect(cost.pause).toBe(6_000)
})

/** The first look from the third on whose pause is short enough for a view that shows each change within 2 s. */
async function quickLook(locks: Readable): Promise<Look> {
  const survey = new Survey(locks)
  onTestFinished(() => survey.close())
  let looks = 0
  survey.watch(() => (looks += 1))
  return until('the view is refreshed within 2 s', () => {
    const { latest } = survey
    return looks >= 3 && latest !== undefined && latest.pause <= 1_500 ? latest : undefined
  })
}

test('a Redis whose round trip is 50 ms is looked at within 2 s, with at most 20 commands a second', async () => {
  await using server = await startRedis()
  await using proxy = await startProxy(server)
  const client = new Redis(proxy.port, { lazyConnect: true })
  await using locks = createLocks(redis(client), { ttl: 60_000 })
  await Promise.all(Array.from({ length: 200 }, (_, index) => locks.acquire(`job-${index}`, { heartbeat: false })))
  proxy.down.delay(50)
  const before = await commands()
  const began = performance.now()
  const { sights } = await quickLook(locks)
  expect(sights.size).toBe(200)
  expect((await commands()) - before).toBeLessThanOrEqual(20 * Math.ceil((performance.now() - began) / 1_000))
  client.disconnect()

  async function commands(): Promise<number> {
    const stats = String(await server.call('INFO', 'commandstats'))
    const sent = Array.from(stats.matchAll(/cmdstat_(?:scan|eval|evalsha):calls=(\d+)/g), ([, calls]) => Number(calls))
    return sent.reduce((sum, calls) => sum + calls, 0)
  }
})

test('a PostgreSQL whose round trip is 50 ms is looked at within 2 s', async () => {
  await using server = await startPostgres()
  await using proxy = await startProxy(server)
  await migrate(server.url())
  await using locks = await connect(server.urlBy(proxy.port), { ttl: 60_000 })
  await locks.acquire('nightly', { heartbeat: false })
  proxy.down.delay(50)
  expect((await quickLook(locks)).sights.size).toBe(1)
})

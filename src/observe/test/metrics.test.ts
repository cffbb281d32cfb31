import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { Redis } from 'ioredis'
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest'
import { startProxy, type TcpProxy } from '../../../lab/servers/proxy.ts'
import { type RedisServer, startRedis } from '../../../lab/servers/redis.ts'
import { until } from '../../../lab/servers/until.ts'
import { acquire, claimOf, signal } from '../../../test/support.ts'
import { createLocks, type Lease, type Locks, subscribe } from '../../index.ts'
import { redis } from '../../stores/redis/index.ts'
import { sqlite } from '../../stores/sqlite/index.ts'
import { METRICS, type MetricName } from '../metrics.ts'
import { type LeaseMetrics, leaseMetrics } from '../prometheus.ts'
import { numbers, promtool } from './exposition.ts'

const folder = mkdtempSync(join(tmpdir(), 'holdfast-metrics-'))
let server: RedisServer
let proxy: TcpProxy
let client: Redis
let files = 0
let path: string
/** Over a file of its own. */
let locks: Locks
let metrics: LeaseMetrics
let ending: AbortController
const leases: Lease[] = []
subscribe('lease_acquired', ({ lease }) => leases.push(lease))

beforeAll(async () => {
  server = await startRedis()
  proxy = await startProxy(server)
})
afterAll(async () => {
  await proxy?.stop()
  await server?.stop()
  rmSync(folder, { recursive: true })
})
beforeEach(() => {
  path = join(folder, `${++files}.db`)
  locks = createLocks(sqlite(path), { ttl: 1_500 }) // less than a release waits
  metrics = leaseMetrics()
  ending = new AbortController()
  client = new Redis(proxy.port, { lazyConnect: true })
})
afterEach(async () => {
  ending.abort()
  // What is only forgotten would be lost, and counted, in a later test.
  await Promise.all(leases.splice(0).map(lease => lease[Symbol.asyncDispose]()))
  await locks.close()
  client.disconnect()
  metrics.stop()
})

/** The value of a series, such as `holdfast_lease_lost_total{reason="gone"}`; without the last labels, their sum. */
function read(series: string): number {
  const found = [...numbers(metrics.text())].filter(([key]) => key === series || key.startsWith(`${series},`))
  if (found.length === 0) expect.fail(`no ${series} in\n${metrics.text()}`)
  return found.reduce((sum, [, value]) => sum + value, 0)
}

async function above(limit: number, series: string): Promise<void> {
  await until(`${series} is above ${limit}`, () => read(series) > limit)
}

/** While it runs nobody can write to the file. */
async function whileLocked(work: () => Promise<void>): Promise<void> {
  const file = new DatabaseSync(path)
  file.exec('begin immediate')
  await work()
  file.exec('rollback')
  file.close()
}

/** The series of each metric, and what changes it. */
const moves: Record<MetricName, readonly [series: string, move: (series: string) => Promise<unknown>]> = {
  acquires: ['holdfast_lease_acquires_total{outcome="acquired"}', () => locks.acquire('a')],
  waitDuration: ['holdfast_lease_wait_duration_seconds_sum', () => locks.acquire('a')],
  lost: [
    'holdfast_lease_lost_total{reason="gone"}',
    async () => {
      const lease = await locks.acquire('a')
      await locks.break('a')
      await expect(lease.extend()).rejects.toMatchObject({ code: 'LEASE_LOST' })
    },
  ],
  terms: [
    'holdfast_leadership_terms_total{outcome="failed"}',
    async () => {
      const failed = locks.election('a').run({ maxFailures: 1 }, () => Promise.reject(new Error('no database')))
      await expect(failed).rejects.toThrow('no database')
    },
  ],
  releaseFailures: [
    'holdfast_lease_release_failures_total',
    async () => {
      const lease = await locks.acquire('a')
      await whileLocked(() => expect(lease.release()).resolves.toBe('unknown'))
    },
  ],
  failedRequests: [
    'holdfast_requests_failed_total{operation="renew"',
    async series => {
      await locks.acquire('a')
      await whileLocked(() => above(0, series))
    },
  ],
  staleRequests: [
    'holdfast_stale_requests_refused_total{reason="late"}',
    async series => {
      await using store = redis(client)
      await acquire(store, claimOf('connected'))
      proxy.up.hold()
      const late = acquire(store, claimOf('late', { ttl: 300 }))
      await expect(Promise.race([late, new Promise(resolve => setTimeout(resolve, 200))])).resolves.toBeUndefined()
      proxy.up.pass()
      await expect(late).rejects.toMatchObject({ code: 'OUTCOME_UNKNOWN' })
      expect(read(series)).toBe(1)
    },
  ],
  holdDuration: [
    'holdfast_lease_hold_duration_seconds_sum',
    async series => {
      const lease = await locks.acquire('a')
      expect(read(series)).toBe(0)
      await lease.release()
    },
  ],
  latency: ['holdfast_heartbeat_latency_seconds_sum', async () => (await locks.acquire('a')).extend()],
  margin: [
    'holdfast_lease_margin_ratio_sum',
    async series => {
      await locks.acquire('a')
      await above(0, series)
      // A beat is at a third of the ttl or sooner, a delayed one later.
      expect(read('holdfast_lease_margin_ratio_sum') / read('holdfast_lease_margin_ratio_count')).toBeLessThan(0.85)
    },
  ],
  batchSize: [
    'holdfast_batch_size_sum',
    async () => {
      await Promise.all(['a', 'b', 'c'].map(name => locks.acquire(name)))
      expect([read('holdfast_batch_size_sum'), read('holdfast_batch_size_count')]).toEqual([3, 1])
    },
  ],
  held: ['holdfast_lease_held', () => locks.acquire('a')],
  waiters: ['holdfast_lease_waiters', async () => void (await waitFor('a'))],
  oldestWait: ['holdfast_lease_oldest_wait_seconds', async () => void (await waitFor('a'))],
  minTtl: [
    'holdfast_lease_shortest_ttl_seconds',
    async series => {
      expect(numbers(metrics.text()).has(series)).toBe(false)
      await locks.acquire('a', { ttl: 5_000 })
      await locks.acquire('b', { ttl: 700 })
      expect(read(series)).toBe(0.7)
    },
  ],
}

async function waitFor(name: string): Promise<void> {
  await locks.acquire(name)
  locks.acquire(name, { signal: ending.signal }).catch(() => {})
}

test.each(Object.keys(moves) as MetricName[])('%s moves', async name => {
  const [series, move] = moves[name]
  expect(series).toMatch(new RegExp(`^${METRICS[name].prometheus}(_sum)?(\\{|$)`))
  if (name !== 'minTtl') expect(read(series)).toBe(0)
  await move(series)
  expect(read(series)).toBeGreaterThan(0)
})

test('Prometheus accepts the text, and the names follow its conventions', async () => {
  const lease = await locks.acquire('a')
  await lease.release()
  promtool(['check', 'metrics'], metrics.text())
})

test.each([
  ['term', { heartbeat: false, ttl: 1_000 }],
  ['max_hold', { maxHold: 50 }],
] as const)('a lost lease is counted with its reason: %s', async (reason, options) => {
  const lease = await locks.acquire('a', options)
  await until('it is lost', () => lease.signal.aborted)
  expect(read(`holdfast_lease_lost_total{reason="${reason}"}`)).toBe(1)
  expect(read('holdfast_lease_held')).toBe(0)
})

test('a waiter is counted until it acquires the name or gives up, for whatever reason', async () => {
  const lease = await locks.acquire('a')
  const controller = new AbortController()
  const aborted = locks.acquire('a', { signal: controller.signal })
  const timedOut = locks.acquire('a', { wait: 1_000 })
  const served = locks.acquire('a')
  expect(read('holdfast_lease_waiters')).toBe(3)
  controller.abort()
  await expect(aborted).rejects.toBe(controller.signal.reason)
  await expect(timedOut).rejects.toMatchObject({ code: 'BUSY' })
  for (const outcome of ['acquired', 'busy', 'aborted'])
    expect(read(`holdfast_lease_acquires_total{outcome="${outcome}"}`), outcome).toBe(1)
  expect(read('holdfast_lease_oldest_wait_seconds')).toBeGreaterThan(0.9)
  await lease.release()
  await served
  expect([
    read('holdfast_lease_waiters'),
    read('holdfast_lease_oldest_wait_seconds'),
    read('holdfast_lease_held'),
  ]).toEqual([0, 0, 1])
})

test('a release that the store does not confirm ends the hold, and is counted once', async () => {
  const lease = await locks.acquire('a')
  await whileLocked(async () => {
    expect(await lease.release()).toBe('unknown')
  })
  expect([
    read('holdfast_lease_release_failures_total'),
    read('holdfast_lease_held'),
    read('holdfast_lease_hold_duration_seconds_count'),
  ]).toEqual([1, 0, 1])
  expect(read('holdfast_requests_failed_total{operation="release"')).toBeGreaterThan(1)
})

test('over Redis, an acquire whose reply was lost is an unknown outcome', async () => {
  const over = createLocks(redis(client), { ttl: 3_000 })
  await over.using('warm', async () => {})
  const cut = proxy.cutAfterRequest('unheard')
  const lease = await over.acquire('unheard')
  await cut
  expect(read('holdfast_requests_failed_total{operation="acquire",error_type="OUTCOME_UNKNOWN"}')).toBeGreaterThan(0)
  lease.assertHeld()
  await lease.release()
  await over.close()
})

test('over Redis, claims of one turn share a request, and an acquire after its withdrawal is refused as stale', async () => {
  await using store = redis(client)
  await Promise.all(Array.from({ length: 10 }, (_, index) => acquire(store, claimOf(`${index}`))))
  expect([read('holdfast_batch_size_sum'), read('holdfast_batch_size_count')]).toEqual([10, 1])
  const claim = claimOf('withdrawn')
  expect(await store.release(claim, signal)).toBe('gone')
  expect(await acquire(store, claim)).toMatchObject({ held: false })
  expect(read('holdfast_stale_requests_refused_total{reason="withdrawn"}')).toBe(1)
})

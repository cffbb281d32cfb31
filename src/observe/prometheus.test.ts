import { channel } from 'node:diagnostics_channel'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { Registry } from 'prom-client'
import { afterEach, expect, test } from 'vitest'
import { until } from '../../lab/servers/until.ts'
import { follow, refused, stage } from '../../test/scripted-store.ts'
import { subscribe } from '../contract/events.ts'
import type { Lease } from '../contract/lease.ts'
import { createLocks } from '../core/locks.ts'
import { memory } from '../stores/memory/index.ts'
import { METRICS } from './metrics.ts'
import { type LeaseMetrics, type LeaseMetricsOptions, leaseMetrics } from './prometheus.ts'
import { numbers } from './test/exposition.ts'

// Vitest does not start its processes with --expose-gc.
setFlagsFromString('--expose-gc')
const collect: () => void = runInNewContext('gc')

const made: LeaseMetrics[] = []

function measure(options?: LeaseMetricsOptions): LeaseMetrics {
  const metrics = leaseMetrics(options)
  made.push(metrics)
  return metrics
}

afterEach(() => {
  for (const metrics of made.splice(0)) metrics.stop()
})

/** What is not zero. */
function moved(text: string): Record<string, number> {
  return Object.fromEntries([...numbers(text)].filter(([series, value]) => value !== 0 && !series.includes('_bucket')))
}

test('everything is there before anything happens, so that the first loss is a rise', () => {
  const text = measure().text()
  expect(numbers(text).get('lease_lost_total{reason="expired"}')).toBe(0)
  expect(numbers(text).get('lease_wait_seconds_bucket{le="+Inf"}')).toBe(0)
  for (const { prometheus } of Object.values(METRICS)) expect(text).toContain(`# TYPE ${prometheus} `)
})

test('a registry of prom-client shows the same numbers beside its own, also as JSON and for OpenMetrics', async () => {
  const registry = new Registry()
  registry.setDefaultLabels({ app: 'invoices' })
  const metrics = measure({ registry })
  const locks = createLocks(memory())
  await locks.using('a', async () => {})
  const plain = metrics.text()
  const expected = [...numbers(plain)].map(([series, value]) => {
    const [name, labels] = series.split(/[{}]/)
    return [`${name}{${labels ? `${labels},` : ''}app="invoices"}`, value]
  })
  expect([...numbers(await registry.metrics())]).toEqual(expected)
  expect(await registry.getMetricsAsJSON()).toContainEqual(
    expect.objectContaining({ name: 'lease_held', type: 'gauge', aggregator: 'sum' }),
  )
  expect(numbers(metrics.text())).toEqual(numbers(plain))
  registry.setContentType(Registry.OPENMETRICS_CONTENT_TYPE as never)
  expect(await registry.metrics()).toContain(
    '\n# TYPE lease_acquired counter\nlease_acquired_total{app="invoices"} 1\n',
  )
  registry.resetMetrics()
  expect(await registry.metrics()).toContain('\nlease_acquired_total{app="invoices"} 0\n')
})

test('two registries at once count the same; one registry takes it once, until it is stopped', async () => {
  const [one, two] = [new Registry(), new Registry()]
  const first = measure({ registry: one })
  measure({ registry: two })
  expect(() => leaseMetrics({ registry: one })).toThrow(
    expect.objectContaining({
      code: 'INVALID_ARGUMENT',
      message: expect.stringContaining('lease_acquired_total already'),
    }),
  )
  const { locks } = stage()
  await locks.acquire('a')
  for (const registry of [one, two]) expect(await registry.metrics()).toContain('\nlease_acquired_total 1\n')
  first.stop()
  first.stop()
  expect(await one.metrics()).toBe('\n')
  await locks.acquire('b')
  expect(numbers(first.text()).get('lease_acquired_total')).toBe(1)
  expect(await two.metrics()).toContain('\nlease_acquired_total 2\n')
  measure({ registry: one })
  expect(await one.metrics()).toContain('\nlease_acquired_total 0\n')
})

test('names are no labels, unless they are mapped', async () => {
  const plain = measure()
  const mapped = measure({ labels: ({ name, owner }) => ({ kind: name.split(':')[0] ?? '', owner, odd: 'a"b\\c\n' }) })
  const { locks, clock } = stage({ owner: 'me' })
  await locks.acquire('job:1')
  const lease = await locks.acquire('job:2', { ttl: 5_000 })
  await clock.advance(3_000)
  await locks.acquire('cron:1')
  await lease.release()
  expect(plain.text()).not.toContain('job')
  const labels = (kind: string): string => `{kind="${kind}",owner="me",odd="a\\"b\\\\c\\n"`
  const found = numbers(mapped.text())
  expect(found.get(`lease_acquired_total${labels('job')}}`)).toBe(2)
  expect(found.get(`lease_acquired_total${labels('cron')}}`)).toBe(1)
  expect(found.get(`lease_held${labels('job')}}`)).toBe(1)
  expect(found.get(`heartbeat_latency_seconds_count${labels('job')}}`)).toBe(2)
  expect(found.get(`lease_lost_total${labels('cron')},reason="gone"}`)).toBe(0)
})

const mappers: readonly [string, () => unknown, string][] = [
  [
    'throws',
    () => {
      throw new Error('no such kind')
    },
    'no such kind',
  ],
  ['answers nothing', () => undefined, 'undefined'],
  ['answers a label that is taken', () => ({ reason: 'mine' }), '"reason" cannot be a label'],
  ['answers what is no label', () => ({ 'a-b': 1 }), '"a-b" cannot be a label'],
]

test.each(mappers)(
  'labels that cannot be had, since the mapper %s, break no lease: one warning',
  async (_, labels, text) => {
    const metrics = measure({ labels: labels as never })
    const warned = once(process, 'warning')
    const { locks } = stage()
    await locks.using('a', async () => {})
    await locks.using('b', async () => {})
    const [warning] = await warned
    expect(warning).toMatchObject({ code: 'HOLDFAST_LABELS', message: expect.stringContaining(text) })
    expect(moved(metrics.text())).toMatchObject({ lease_acquired_total: 2, lease_held_seconds_count: 2 })
  },
)

test('what cannot be right is refused', () => {
  const untyped = leaseMetrics as (...given: unknown[]) => unknown
  expect(() => untyped({ label: {} })).toThrow('leaseMetrics has no option "label", only registry, labels')
  expect(() => untyped({ registry: {} })).toThrow('registry must be a Registry of prom-client')
  expect(() => untyped({ labels: { kind: 'job' } })).toThrow('labels must be a function')
})

test('leases and waits from before are not among the gauges, and do no harm when they end', async () => {
  const { locks, clock } = stage()
  const held = await locks.acquire('a')
  const waiting = locks.acquire('a')
  await clock.advance(0)
  const metrics = measure()
  await held.release()
  await clock.advance(0)
  const next = await waiting
  expect(numbers(metrics.text()).get('lease_waiting')).toBe(0)
  expect(numbers(metrics.text()).get('lease_held')).toBe(1)
  await next.release()
  expect(moved(metrics.text())).toMatchObject({ lease_acquired_total: 1, lease_held_seconds_count: 1 })
  expect(numbers(metrics.text()).get('lease_held')).toBe(0)
})

test('what was left at an extension to another ttl is a share of the ttl until then', async () => {
  const metrics = measure()
  const { locks, clock } = stage({ heartbeat: false })
  const lease = await locks.acquire('a', { ttl: 10_000 })
  const shares: number[] = []
  let sum = 0
  for (const ttl of [300_000, 300_000, 10_000, 10_000]) {
    await clock.advance(lease.ttl / 4)
    await lease.extend(ttl)
    const now = numbers(metrics.text()).get('lease_margin_ratio_sum') ?? 0
    shares.push(now - sum)
    sum = now
  }
  for (const share of shares) expect(share).toBeCloseTo(0.74, 2)
})

test('nothing is kept of leases that ended, however they did', async () => {
  const metrics = measure()
  const refs: WeakRef<Lease>[] = []
  const stopListening = subscribe('lease_acquired', ({ lease }) => void refs.push(new WeakRef(lease)))
  const end = async (): Promise<void> => {
    const { locks, clock, store } = stage()
    await locks.using('released', async () => {})
    await locks.acquire('expired', { heartbeat: false })
    await clock.advance(10_000)
    const unconfirmed = await locks.acquire('unconfirmed')
    store.rule('release', refused)
    const release = follow(unconfirmed.release())
    await clock.advance(10_000)
    expect(release.value).toBe('unknown')
  }
  await end()
  stopListening()
  expect(numbers(metrics.text()).get('lease_held_seconds_count')).toBe(3)
  expect(numbers(metrics.text()).get('lease_held')).toBe(0)
  await until('all are collected', () => {
    collect()
    return refs.every(ref => ref.deref() === undefined)
  })
  expect(refs).toHaveLength(3)
})

test('stopping leaves no listener behind', () => {
  const channels = [...readFileSync('src/contract/events.ts', 'utf8').matchAll(/open\('(\w+)'\)/g)].map(
    ([, name]) => name,
  )
  const heard = (): unknown[] => channels.filter(name => channel(`holdfast:${name}`).hasSubscribers)
  const metrics = measure()
  expect(heard().length).toBeGreaterThan(8)
  metrics.stop()
  expect(heard()).toEqual([])
})

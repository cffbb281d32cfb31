import { once } from 'node:events'
import { Registry } from 'prom-client'
import { afterEach, expect, test } from 'vitest'
import { until } from '../../lab/servers/until.ts'
import { collect } from '../../test/garbage.ts'
import { follow, refused, stage } from '../../test/scripted-store.ts'
import { events, subscribe } from '../contract/events.ts'
import type { Lease } from '../contract/lease.ts'
import { createLocks } from '../create-locks.ts'
import { memory } from '../stores/memory/index.ts'
import { METRICS } from './metrics.ts'
import { type LeaseMetrics, type LeaseMetricsOptions, leaseMetrics } from './prometheus.ts'
import { numbers } from './test/exposition.ts'

const made: LeaseMetrics[] = []

function measure(options?: LeaseMetricsOptions): LeaseMetrics {
  const metrics = leaseMetrics(options)
  made.push(metrics)
  return metrics
}

afterEach(() => {
  for (const metrics of made.splice(0)) metrics.stop()
})

/** The series that are not zero. */
function moved(text: string): Record<string, number> {
  return Object.fromEntries([...numbers(text)].filter(([series, value]) => value !== 0 && !series.includes('_bucket')))
}

test('every metric starts at zero, so that the first loss shows as an increase', () => {
  const text = measure().text()
  expect(numbers(text).get('holdfast_lease_lost_total{reason="expired"}')).toBe(0)
  expect(numbers(text).get('holdfast_lease_wait_duration_seconds_bucket{le="+Inf"}')).toBe(0)
  for (const { prometheus } of Object.values(METRICS)) expect(text).toContain(`# TYPE ${prometheus} `)
})

test('the Prometheus name is the OpenTelemetry name with its unit, and with _total for a counter', () => {
  const { acquires, latency, margin, held } = METRICS
  expect([acquires, latency, margin, held].map(({ prometheus }) => prometheus)).toEqual([
    'holdfast_lease_acquires_total',
    'holdfast_heartbeat_latency_seconds',
    'holdfast_lease_margin_ratio',
    'holdfast_lease_held',
  ])
  for (const { prometheus, otel } of Object.values(METRICS))
    expect([prometheus, otel]).toEqual([expect.stringMatching(/^holdfast_/), expect.stringMatching(/^holdfast\./)])
})

test('a prom-client registry shows the same numbers with its own, also as JSON and OpenMetrics', async () => {
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
    expect.objectContaining({ name: 'holdfast_lease_held', type: 'gauge', aggregator: 'sum' }),
  )
  expect(numbers(metrics.text())).toEqual(numbers(plain))
  registry.setContentType(Registry.OPENMETRICS_CONTENT_TYPE as never)
  expect(await registry.metrics()).toContain(
    '\n# TYPE holdfast_lease_acquires counter\nholdfast_lease_acquires_total{outcome="acquired",app="invoices"} 1\n',
  )
  registry.resetMetrics()
  expect(await registry.metrics()).toContain('\nholdfast_lease_acquires_total{outcome="acquired",app="invoices"} 0\n')
})

test('two registries count the same; one registry accepts the metrics once, until they are stopped', async () => {
  const [one, two] = [new Registry(), new Registry()]
  const first = measure({ registry: one })
  measure({ registry: two })
  expect(() => leaseMetrics({ registry: one })).toThrow(
    expect.objectContaining({
      code: 'INVALID_ARGUMENT',
      message: expect.stringContaining('already has a metric holdfast_lease_acquires_total'),
    }),
  )
  const { locks } = stage()
  await locks.acquire('a')
  for (const registry of [one, two])
    expect(await registry.metrics()).toContain('\nholdfast_lease_acquires_total{outcome="acquired"} 1\n')
  first.stop()
  first.stop()
  expect(await one.metrics()).toBe('\n')
  await locks.acquire('b')
  expect(numbers(first.text()).get('holdfast_lease_acquires_total{outcome="acquired"}')).toBe(1)
  expect(await two.metrics()).toContain('\nholdfast_lease_acquires_total{outcome="acquired"} 2\n')
  measure({ registry: one })
  expect(await one.metrics()).toContain('\nholdfast_lease_acquires_total{outcome="acquired"} 0\n')
})

test('the name of a lease is a label only if it is mapped', async () => {
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
  expect(found.get(`holdfast_lease_acquires_total${labels('job')},outcome="acquired"}`)).toBe(2)
  expect(found.get(`holdfast_lease_acquires_total${labels('cron')},outcome="acquired"}`)).toBe(1)
  expect(found.get(`holdfast_lease_held${labels('job')}}`)).toBe(1)
  expect(found.get(`holdfast_heartbeat_latency_seconds_count${labels('job')}}`)).toBe(2)
  expect(found.get(`holdfast_lease_lost_total${labels('cron')},reason="gone"}`)).toBe(0)
})

test('equal labels are one series: in any order, and an empty value is none', async () => {
  const labels = (name: string): Record<string, string> =>
    ({ a: { queue: 'mail', team: 'x' }, b: { team: 'x', queue: 'mail' }, c: { region: '' } })[name] ?? {}
  const metrics = measure({ labels: ({ name }) => labels(name) })
  const { locks } = stage()
  for (const name of ['a', 'b', 'c', 'd']) await locks.acquire(name)
  const acquired = [...numbers(metrics.text())].filter(([series]) => series.endsWith('outcome="acquired"}'))
  expect(Object.fromEntries(acquired)).toEqual({
    'holdfast_lease_acquires_total{queue="mail",team="x",outcome="acquired"}': 2,
    'holdfast_lease_acquires_total{outcome="acquired"}': 2,
  })
})

test('the kind tells leases, permits, readers, writers and sets apart', async () => {
  const metrics = measure({ labels: ({ kind }) => ({ kind }) })
  const { locks, other, clock, store } = stage()
  const { reader, writer } = locks.readWrite('pages')
  const held = [
    await locks.acquire('a'),
    await locks.semaphore('api', { limit: 2 }).acquire({ permits: 2 }),
    await reader.acquire(),
    await locks.all(['b', 'c']).acquire(),
  ]
  expect(await writer.tryAcquire()).toBeUndefined()
  const waiting = follow(writer.acquire())
  await clock.advance(0)
  const series = (): Record<string, number> => moved(metrics.text())
  for (const [kind, count] of Object.entries({ lease: 1, permit: 1, reader: 1, set: 2 })) {
    expect(series()[`holdfast_lease_acquires_total{kind="${kind}",outcome="acquired"}`]).toBe(count)
    expect(series()[`holdfast_lease_held{kind="${kind}"}`]).toBe(count)
  }
  expect(series()['holdfast_lease_acquires_total{kind="writer",outcome="busy"}']).toBe(1)
  expect(series()['holdfast_lease_waiters{kind="writer"}']).toBe(1)
  await other.break('api')
  await clock.advance(4_000)
  expect(series()['holdfast_lease_lost_total{kind="permit",reason="gone"}']).toBe(1)
  store.rule('renew', refused)
  await clock.advance(4_000)
  expect(
    series()['holdfast_requests_failed_total{kind="reader",operation="renew",error_type="STORE_UNAVAILABLE"}'],
  ).toBeGreaterThan(0)
  store.restore('renew')
  for (const each of held) await each.release()
  await clock.advance(0)
  expect(waiting.settled).toBe(true)
  expect(series()['holdfast_lease_held{kind="writer"}']).toBe(1)
})

const mappers: readonly [string, () => unknown, string][] = [
  [
    'throws',
    () => {
      throw new Error('no such kind')
    },
    'no such kind',
  ],
  ['returns nothing', () => undefined, 'undefined'],
  ['returns a label that is taken', () => ({ reason: 'mine' }), '"reason" cannot be a label'],
  ['returns an invalid label', () => ({ 'a-b': 1 }), '"a-b" cannot be a label'],
]

test.each(mappers)('a labels function that %s breaks no lease and warns once', async (_, labels, text) => {
  const metrics = measure({ labels: labels as never })
  const warned = once(process, 'warning')
  const { locks } = stage()
  await locks.using('a', async () => {})
  await locks.using('b', async () => {})
  const [warning] = await warned
  expect(warning).toMatchObject({ code: 'HOLDFAST_LABELS', message: expect.stringContaining(text) })
  expect(moved(metrics.text())).toMatchObject({
    'holdfast_lease_acquires_total{outcome="acquired"}': 2,
    holdfast_lease_hold_duration_seconds_count: 2,
  })
})

test('wrong options are refused', () => {
  const untyped = leaseMetrics as (...given: unknown[]) => unknown
  expect(() => untyped({ label: {} })).toThrow('leaseMetrics has no option "label", only registry, labels')
  expect(() => untyped({ registry: {} })).toThrow('registry must be a Registry of prom-client')
  expect(() => untyped({ labels: { kind: 'job' } })).toThrow('labels must be a function')
})

test('the gauges do not include earlier leases and waits, also when these end', async () => {
  const { locks, clock } = stage()
  const held = await locks.acquire('a')
  const waiting = locks.acquire('a')
  await clock.advance(0)
  const metrics = measure()
  await held.release()
  await clock.advance(0)
  const next = await waiting
  expect(numbers(metrics.text()).get('holdfast_lease_waiters')).toBe(0)
  expect(numbers(metrics.text()).get('holdfast_lease_held')).toBe(1)
  await next.release()
  expect(moved(metrics.text())).toMatchObject({
    'holdfast_lease_acquires_total{outcome="acquired"}': 1,
    holdfast_lease_hold_duration_seconds_count: 1,
  })
  expect(numbers(metrics.text()).get('holdfast_lease_held')).toBe(0)
})

test('the margin at an extension to another ttl is a share of the ttl before it', async () => {
  const metrics = measure()
  const { locks, clock } = stage({ heartbeat: false })
  const lease = await locks.acquire('a', { ttl: 10_000 })
  const shares: number[] = []
  let sum = 0
  for (const ttl of [300_000, 300_000, 10_000, 10_000]) {
    await clock.advance(lease.ttl / 4)
    await lease.extend(ttl)
    const now = numbers(metrics.text()).get('holdfast_lease_margin_ratio_sum') ?? 0
    shares.push(now - sum)
    sum = now
  }
  for (const share of shares) expect(share).toBeCloseTo(0.74, 2)
})

test('nothing is retained of ended leases, however they ended', async () => {
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
  expect(numbers(metrics.text()).get('holdfast_lease_hold_duration_seconds_count')).toBe(3)
  expect(numbers(metrics.text()).get('holdfast_lease_held')).toBe(0)
  await until('all are collected', () => {
    collect()
    return refs.every(ref => ref.deref() === undefined)
  })
  expect(refs).toHaveLength(3)
})

test('stopping removes every listener', () => {
  const heard = (): unknown[] => Object.values(events).filter(({ hasSubscribers }) => hasSubscribers)
  const metrics = measure()
  expect(heard().length).toBeGreaterThan(8)
  metrics.stop()
  expect(heard()).toEqual([])
})

import { channel } from 'node:diagnostics_channel'
import { context, trace } from '@opentelemetry/api'
import { AsyncLocalStorageContextManager } from '@opentelemetry/context-async-hooks'
import {
  AggregationTemporality,
  type DataPoint,
  InMemoryMetricExporter,
  MeterProvider,
  PeriodicExportingMetricReader,
} from '@opentelemetry/sdk-metrics'
import {
  BasicTracerProvider,
  InMemorySpanExporter,
  type ReadableSpan,
  SimpleSpanProcessor,
} from '@opentelemetry/sdk-trace-base'
import { afterAll, afterEach, beforeAll, beforeEach, expect, test, vi } from 'vitest'
import { until } from '../../lab/servers/until.ts'
import { collect, droppedWarnings, renewedAndCollected } from '../../test/garbage.ts'
import { follow, refused, stage } from '../../test/scripted-store.ts'
import { createLocks } from '../create-locks.ts'
import { memory } from '../stores/memory/index.ts'
import { METRICS } from './metrics.ts'
import { type LeaseTelemetry, leaseTelemetry } from './otel.ts'

const spans = new InMemorySpanExporter()
const tracerProvider = new BasicTracerProvider({ spanProcessors: [new SimpleSpanProcessor(spans)] })
const tracer = tracerProvider.getTracer('caller')
const manager = new AsyncLocalStorageContextManager()
let exporter: InMemoryMetricExporter
let meterProvider: MeterProvider
let telemetry: LeaseTelemetry

beforeAll(() => context.setGlobalContextManager(manager.enable()))
afterAll(() => context.disable())
beforeEach(() => {
  exporter = new InMemoryMetricExporter(AggregationTemporality.CUMULATIVE)
  const reader = new PeriodicExportingMetricReader({ exporter, exportIntervalMillis: 3_600_000 })
  meterProvider = new MeterProvider({ readers: [reader] })
  telemetry = leaseTelemetry({ meterProvider, tracerProvider, labels: ({ name }) => ({ kind: name[0] ?? '' }) })
})
afterEach(async () => {
  telemetry.stop()
  spans.reset()
  await meterProvider.shutdown()
})

/** The last points of each metric, by its name. */
async function measured(): Promise<Record<string, { unit: string; points: readonly DataPoint<unknown>[] }>> {
  exporter.reset()
  await meterProvider.forceFlush()
  const metrics = exporter.getMetrics().flatMap(({ scopeMetrics }) => scopeMetrics.flatMap(scope => scope.metrics))
  return Object.fromEntries(
    metrics.map(({ descriptor: { name, unit }, dataPoints }) => [name, { unit, points: dataPoints }]),
  )
}

/** Those that have ended, in the order of their names. */
function ended(): ReadableSpan[] {
  return spans.getFinishedSpans().toSorted((a, b) => a.name.localeCompare(b.name))
}

/** Runs below a span of that name, as a request handler would; answers the id of that. */
function below(name: string, work: () => unknown): Promise<string> {
  return tracer.startActiveSpan(name, async span => {
    await work()
    return span.spanContext().spanId
  })
}

test('every metric has its unit and the mapped labels', async () => {
  const { locks, other, clock, store } = stage({ ttl: 9_000 })
  const lease = await locks.acquire('a')
  expect(await locks.tryAcquire('a')).toBeUndefined()
  const failing = Promise.reject(new Error('no database'))
  await expect(locks.election('e').run({ maxFailures: 1 }, () => failing)).rejects.toThrow('no database')
  await clock.advance(3_000)
  await other.break('a')
  await clock.advance(3_000)
  expect(lease.signal.aborted).toBe(true)
  store.rule('release', refused)
  const unconfirmed = await locks.acquire('b')
  const release = follow(unconfirmed.release())
  await clock.advance(10_000)
  expect(release.settled).toBe(true)
  await locks.acquire('c', { ttl: 5_000 })
  void locks.acquire('c', { signal: AbortSignal.timeout(600_000) }).catch(() => {})

  const found = await measured()
  const over = Object.values(METRICS).filter(({ ofLease }) => ofLease !== false)
  for (const { otel, unit } of over) expect(found[otel], otel).toMatchObject({ unit })
  const point = (name: string, kind: string): unknown =>
    found[name]?.points.find(({ attributes }) => attributes.kind === kind)
  const acquires = found['holdfast.lease.acquires']?.points.filter(({ attributes }) => attributes.kind === 'a')
  expect(acquires?.map(({ value, attributes: { outcome } }) => [outcome, value])).toEqual([
    ['acquired', 1],
    ['busy', 1],
  ])
  expect(point('holdfast.lease.lost', 'a')).toMatchObject({ value: 1, attributes: { reason: 'gone' } })
  const failed = found['holdfast.leadership.terms']?.points.filter(({ attributes }) => attributes.outcome === 'failed')
  expect(failed).toMatchObject([{ value: 1, attributes: { kind: 'e' } }])
  expect(point('holdfast.requests.failed', 'b')).toMatchObject({
    attributes: { operation: 'release', 'error.type': 'STORE_UNAVAILABLE' },
  })
  expect(point('holdfast.heartbeat.latency', 'a')).toMatchObject({ value: { count: 1 } })
  expect(point('holdfast.lease.margin', 'a')).toMatchObject({
    value: { buckets: { boundaries: METRICS.margin.buckets } },
  })
  expect(point('holdfast.lease.held', 'c')).toMatchObject({ value: 1 })
  expect(point('holdfast.lease.waiters', 'c')).toMatchObject({ value: 1 })
  expect(point('holdfast.lease.shortest_ttl', 'c')).toMatchObject({ value: 5 })
  expect(point('holdfast.lease.shortest_ttl', 'a')).toBeUndefined()

  telemetry.stop()
  telemetry.stop()
  await locks.acquire('d')
  const kinds = (await measured())['holdfast.lease.acquires']?.points.map(({ attributes }) => attributes.kind)
  expect(kinds).toEqual(['a', 'a', 'e', 'b', 'c'])
})

test('acquire, hold and release are children of the span of the caller', async () => {
  const locks = createLocks(memory(), { owner: 'me' })
  let token = 0n
  const caller = await below('job', () =>
    locks.using('reports', async lease => {
      token = lease.token
    }),
  )
  const attributes = { 'holdfast.lease.name': 'reports', 'holdfast.lease.owner': 'me', 'holdfast.lease.ttl': 10_000 }
  const granted = { ...attributes, 'holdfast.lease.token': `${token}` }
  expect(ended()).toMatchObject([
    { name: 'lease acquire', parentSpanContext: { spanId: caller }, attributes: granted, status: { code: 0 } },
    { name: 'lease hold', parentSpanContext: { spanId: caller }, attributes: granted, status: { code: 0 } },
    { name: 'lease release', parentSpanContext: { spanId: caller }, attributes, status: { code: 0 } },
  ])
  for (const { instrumentationScope } of ended()) expect(instrumentationScope.name).toBe('holdfast')
})

test('a waiter keeps its own caller when another wakes it, and a release has its own caller', async () => {
  const locks = createLocks(memory())
  const first = await locks.acquire('a')
  let second = first
  const waiting = below('waiter', async () => {
    second = await locks.acquire('a')
  })
  const waker = await below('waker', () => first.release())
  const waiter = await waiting
  const keeper = await below('keeper', () => second.release())
  const parents = ended().map(({ name, parentSpanContext }) => [name, parentSpanContext?.spanId])
  expect(parents).toEqual([
    ['lease acquire', undefined],
    ['lease acquire', waiter],
    ['lease hold', undefined],
    ['lease hold', waiter],
    ['lease release', waker],
    ['lease release', keeper],
  ])
})

test('errors are on the span: a busy name and an abort are not errors, a loss is', async () => {
  const { locks, other, clock, store } = stage({ ttl: 1_000, owner: 'me' })
  await other.acquire('a')
  await locks.tryAcquire('a')
  const stopped = follow(locks.acquire('a', { signal: AbortSignal.abort(new Error('shutdown')) }))
  await clock.advance(0)
  expect(stopped.settled).toBe(true)
  const lease = await locks.acquire('b')
  store.ruleAll(refused)
  await clock.advance(1_000)
  const release = follow(lease.release())
  await clock.advance(1_000)
  expect(release.settled).toBe(true)
  const [busy, aborted, , hold] = ended().filter(({ attributes }) => attributes['holdfast.lease.owner'] === 'me')
  expect(busy).toMatchObject({ status: { code: 0 }, attributes: { 'holdfast.lease.outcome': 'busy' } })
  expect(aborted).toMatchObject({ status: { code: 0 }, attributes: { 'holdfast.lease.outcome': 'aborted' } })
  expect(hold).toMatchObject({ name: 'lease hold', status: { code: 2 }, attributes: { 'error.type': 'LEASE_LOST' } })
  expect(hold?.events[0]).toMatchObject({ name: 'heartbeat failed', attributes: { 'error.type': 'STORE_UNAVAILABLE' } })
})

test('a lease and a permit that the program has dropped cause the warning, and are followed to their end', async () => {
  const warn = vi.spyOn(process, 'emitWarning').mockImplementation(() => {})
  const names = ['lease', 'permit']
  const locks = createLocks(memory(), { ttl: 1_000 })
  await locks.acquire('lease')
  await locks.semaphore('permit', { limit: 2 }).acquire()
  await renewedAndCollected(locks, 4)
  await until('the warning', () => {
    collect()
    return droppedWarnings(warn).length > 0
  })
  const held = async (): Promise<unknown[]> =>
    (await measured())['holdfast.lease.held']?.points.map(({ value }) => value) ?? []
  const holds = (): unknown[] =>
    ended().flatMap(({ name, attributes }) => (name === 'lease hold' ? attributes['holdfast.lease.name'] : []))
  expect([await held(), holds()]).toEqual([[1, 1], []])
  for (const name of names) await locks.break(name)
  await until('both are lost', () => holds().length === names.length)
  expect(await held()).toEqual([0, 0])
  warn.mockRestore()
  await locks.close({ grace: 0 })
})

test('stopping ends open spans', async () => {
  const { locks } = stage()
  await locks.acquire('a')
  expect(ended()).toMatchObject([{ name: 'lease acquire' }])
  telemetry.stop()
  expect(ended()).toMatchObject([{ name: 'lease acquire' }, { name: 'lease hold' }])
})

test('without providers it uses the global ones, and works without them', async () => {
  const global = leaseTelemetry()
  const { locks } = stage()
  await locks.using('a', async () => {})
  global.stop()
  expect(trace.getTracer('holdfast')).toBeDefined()
  expect(() => (leaseTelemetry as (options: object) => unknown)({ label: 1 })).toThrow(
    'leaseTelemetry has no option "label"',
  )
})

test('an invalid provider is refused before anything is measured', () => {
  telemetry.stop()
  for (const options of [{ meterProvider: {} }, { tracerProvider: {} }, { tracerProvider: null }])
    expect(() => leaseTelemetry(options as never)).toThrow(expect.objectContaining({ code: 'INVALID_ARGUMENT' }))
  expect(channel('holdfast:lease_acquired').hasSubscribers).toBe(false)
})

import {
  type Counter,
  type Histogram,
  type Meter,
  metrics,
  type ObservableCallback,
  type ObservableGauge,
  type Tracer,
  trace,
} from '@opentelemetry/api'
import { checkKeys, invalid } from '../contract/check.ts'
import type { LabelMapper, Labels } from './labels.ts'
import { METRICS, type Metric, type MetricName } from './metrics.ts'
import { Spans } from './spans.ts'
import { type GaugeName, type Recorder, Watch } from './watch.ts'

export type { LabelMapper } from './labels.ts'

export interface LeaseTelemetryOptions {
  /** Where the metrics go. @default the global one, as it is when this is called */
  readonly meterProvider?: { getMeter(name: string): unknown } | undefined
  /** Where the spans go. @default the global one */
  readonly tracerProvider?: { getTracer(name: string): unknown } | undefined
  /**
   * Attributes of your own for the metrics of a lease, such as `({ name }) => ({ kind: name.split(':')[0] })`: keep the number
   * of different ones small. If it throws, or answers what cannot be an attribute, there is one warning
   * (`HOLDFAST_LABELS`), and the lease is counted without. @default none: a name is an attribute of spans only
   */
  readonly labels?: LabelMapper | undefined
}

export interface LeaseTelemetry {
  /** Measures nothing any more, and ends the spans that are open. May be called twice. */
  stop(): void
}

const known = new Set(['meterProvider', 'tracerProvider', 'labels'])
const SCOPE = 'holdfast'

/**
 * Tells OpenTelemetry what happens to all leases of this process: metrics called `holdfast.lease.…`, and spans `lease
 * acquire`, `lease hold` and `lease release`, below whatever is active where the call is made. Call it once, after the
 * SDK has started and before the first lease.
 */
export function leaseTelemetry(options: LeaseTelemetryOptions = {}): LeaseTelemetry {
  checkKeys(options, known, 'leaseTelemetry')
  const { meterProvider = metrics, tracerProvider = trace, labels } = options
  if (typeof meterProvider?.getMeter !== 'function')
    throw invalid('meterProvider must be one: an object with getMeter()')
  if (typeof tracerProvider?.getTracer !== 'function')
    throw invalid('tracerProvider must be one: an object with getTracer()')
  const instruments = new Instruments(meterProvider.getMeter(SCOPE) as Meter, labels)
  const spans = new Spans(tracerProvider.getTracer(SCOPE) as Tracer)
  return {
    stop: () => {
      instruments.stop()
      spans.stop()
    },
  }
}

class Instruments implements Recorder {
  readonly #counters = new Map<MetricName, Counter>()
  readonly #histograms = new Map<MetricName, Histogram>()
  readonly #watch: Watch
  readonly #stops: (() => void)[] = []

  constructor(meter: Meter, labels: LabelMapper | undefined) {
    this.#watch = new Watch(this, labels)
    for (const [name, metric] of Object.entries(METRICS) as [MetricName, Metric][]) {
      const { kind, otel, unit, help: description, buckets = [] } = metric
      const advice = { explicitBucketBoundaries: [...buckets] }
      if (kind === 'counter') this.#counters.set(name, meter.createCounter(otel, { description, unit }))
      else if (kind === 'histogram')
        this.#histograms.set(name, meter.createHistogram(otel, { description, unit, advice }))
      else this.#observe(meter.createObservableGauge(otel, { description, unit }), name as GaugeName)
    }
  }

  count(metric: MetricName, labels: Labels): void {
    this.#counters.get(metric)?.add(1, labels)
  }

  record(metric: MetricName, labels: Labels, value: number): void {
    this.#histograms.get(metric)?.record(value, labels)
  }

  stop(): void {
    this.#watch.stop()
    for (const stop of this.#stops.splice(0)) stop()
  }

  #observe(gauge: ObservableGauge, name: GaugeName): void {
    const tell: ObservableCallback = result => {
      for (const { labels, [name]: value } of this.#watch.gauges) if (value !== undefined) result.observe(value, labels)
    }
    gauge.addCallback(tell)
    this.#stops.push(() => gauge.removeCallback(tell))
  }
}

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

export type { Labelled, LabelMapper } from './labels.ts'

export interface LeaseTelemetryOptions {
  /** Receives the metrics. @default the global provider at the time of the call */
  readonly meterProvider?: { getMeter(name: string): unknown } | undefined
  /** Receives the spans. @default the global provider */
  readonly tracerProvider?: { getTracer(name: string): unknown } | undefined
  /**
   * Your own attributes for the metrics of a lease, as the labels of `leaseMetrics`. @default none: the name of a lease is
   * an attribute of spans only
   */
  readonly labels?: LabelMapper | undefined
}

export interface LeaseTelemetry {
  /** Stops measuring and ends open spans. Idempotent. */
  stop(): void
}

const known = new Set(['meterProvider', 'tracerProvider', 'labels'])
const SCOPE = 'holdfast'

/**
 * Reports all leases of this process to OpenTelemetry: metrics named `holdfast.…`, and the spans `lease acquire`,
 * `lease hold` and `lease release`, as children of the caller's active span. Call it once, after the SDK has started and
 * before the first lease. Throws `INVALID_ARGUMENT` if an option is wrong.
 */
export function leaseTelemetry(options: LeaseTelemetryOptions = {}): LeaseTelemetry {
  checkKeys(options, known, 'leaseTelemetry')
  const { meterProvider = metrics, tracerProvider = trace, labels } = options
  if (typeof meterProvider?.getMeter !== 'function')
    throw invalid('meterProvider must be a MeterProvider: an object with getMeter()')
  if (typeof tracerProvider?.getTracer !== 'function')
    throw invalid('tracerProvider must be a TracerProvider: an object with getTracer()')
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
    const { error_type: type, ...own } = labels
    this.#counters.get(metric)?.add(1, type === undefined ? labels : { ...own, 'error.type': type })
  }

  record(metric: MetricName, labels: Labels, value: number): void {
    this.#histograms.get(metric)?.record(value, labels)
  }

  stop(): void {
    this.#watch.stop()
    for (const stop of this.#stops.splice(0)) stop()
  }

  #observe(gauge: ObservableGauge, name: GaugeName): void {
    const report: ObservableCallback = result => {
      for (const { labels, [name]: value } of this.#watch.gauges) if (value !== undefined) result.observe(value, labels)
    }
    gauge.addCallback(report)
    this.#stops.push(() => gauge.removeCallback(report))
  }
}

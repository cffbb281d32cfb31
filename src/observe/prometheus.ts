import { checkKeys, invalid } from '../contract/check.ts'
import { Family, type Sample } from './family.ts'
import type { LabelMapper, Labels } from './labels.ts'
import { METRICS, type Metric, type MetricName } from './metrics.ts'
import { type GaugeName, type Recorder, Watch } from './watch.ts'

export type { Labelled, LabelMapper } from './labels.ts'

/** A `Registry` of prom-client 15 or newer. */
export interface PrometheusRegistry {
  registerMetric(metric: never): void
  removeSingleMetric(name: string): void
  getSingleMetric(name: string): unknown
}

export interface LeaseMetricsOptions {
  /** Shows the metrics together with your own, such as prom-client's `register`. @default none, only `text()` */
  readonly registry?: PrometheusRegistry | undefined
  /**
   * Your own labels, such as `({ name }) => ({ kind: name.split(':')[0] })`, with few distinct values. If it throws or
   * returns an invalid label, the lease is counted without labels, with the warning `HOLDFAST_LABELS`. @default none: the
   * name of a lease is not a label
   */
  readonly labels?: LabelMapper | undefined
}

/** The metrics of all leases of this process, whichever `Locks` they come from, since `leaseMetrics()`. */
export interface LeaseMetrics {
  /** The `Content-Type` of `text()`. */
  readonly contentType: string
  /** All metrics in Prometheus's text format. */
  text(): string
  /** Stops counting and removes the metrics from the registry. Idempotent. */
  stop(): void
}

const known = new Set(['registry', 'labels'])

/**
 * Counts what happens to leases, for Prometheus. Call it once, before the first lease: the gauges do not include earlier
 * leases. Throws `INVALID_ARGUMENT` if the registry already has one of the metrics.
 */
export function leaseMetrics(options: LeaseMetricsOptions = {}): LeaseMetrics {
  checkKeys(options, known, 'leaseMetrics')
  const { registry, labels } = options
  if (registry !== undefined && typeof registry?.registerMetric !== 'function')
    throw invalid('registry must be a Registry of prom-client, such as its register')
  return new Families(registry, labels)
}

class Families implements LeaseMetrics, Recorder {
  readonly contentType = 'text/plain; version=0.0.4; charset=utf-8'
  readonly #families = new Map<MetricName, Family>()
  readonly #watch: Watch
  readonly #registry: PrometheusRegistry | undefined

  constructor(registry: PrometheusRegistry | undefined, labels: LabelMapper | undefined) {
    for (const [key, metric] of Object.entries(METRICS) as [MetricName, Metric][]) {
      const { prometheus, kind, ofLease } = metric
      if (registry?.getSingleMetric(prometheus))
        throw invalid(`the registry already has a metric ${prometheus}: call leaseMetrics() once for each registry`)
      const read = kind === 'gauge' ? (): Sample[] => this.#read(key as GaugeName) : undefined
      const family = new Family(metric, read)
      this.#families.set(key, family)
      if (ofLease === false) family.begin({})
    }
    this.#watch = new Watch(this, labels)
    this.#registry = registry
    for (const family of this.#families.values()) registry?.registerMetric(family as never)
  }

  begin(labels: Labels): void {
    for (const family of this.#families.values()) if (family.metric.ofLease !== false) family.begin(labels)
  }

  count(metric: MetricName, labels: Labels): void {
    this.#families.get(metric)?.count(labels)
  }

  record(metric: MetricName, labels: Labels, value: number): void {
    this.#families.get(metric)?.record(labels, value)
  }

  text(): string {
    return [...this.#families.values()].join('')
  }

  stop(): void {
    this.#watch.stop()
    for (const family of this.#families.values()) {
      const { prometheus } = family.metric
      if (this.#registry?.getSingleMetric(prometheus) === family) this.#registry.removeSingleMetric(prometheus)
    }
  }

  #read(gauge: GaugeName): Sample[] {
    return this.#watch.gauges.flatMap(gauges => {
      const { labels, [gauge]: value } = gauges
      return value === undefined ? [] : [{ labels, value }]
    })
  }
}

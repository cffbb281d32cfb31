import type { Labels } from './labels.ts'
import type { Metric } from './metrics.ts'

/** One value of a metric, in the shape of prom-client. */
export interface Sample {
  readonly labels: Labels
  readonly value: number
  /** The name, if it differs from the family's name, as for the buckets of a histogram. */
  readonly metricName?: string
}

interface Series {
  readonly labels: Labels
  value: number
  /** For a histogram: the number of values up to each bound and above the previous one. */
  readonly buckets: number[]
  count: number
}

/**
 * A metric with all its time series. It has the shape of a metric of prom-client 15, so a prom-client registry accepts it.
 * It also writes Prometheus's text format: https://prometheus.io/docs/instrumenting/exposition_formats
 */
export class Family {
  readonly metric: Metric
  /** Mutable: for OpenMetrics the registry removes `_total`. */
  name: string
  readonly help: string
  readonly type: Metric['kind']
  readonly aggregator: string
  readonly #bounds: readonly number[]
  readonly #series = new Map<string, Series>()
  readonly #read: (() => readonly Sample[]) | undefined

  /** `read` returns the values of a gauge. */
  constructor(metric: Metric, read?: () => readonly Sample[]) {
    const { prometheus, help, kind, buckets = [], aggregator = 'sum' } = metric
    this.metric = metric
    this.name = prometheus
    this.help = help
    this.type = kind
    this.aggregator = aggregator
    this.#bounds = buckets
    this.#read = read
  }

  /** Starts the series with these labels at zero, so that their first event shows as an increase. */
  begin(labels: Labels): void {
    let all: Labels[] = [labels]
    for (const [name, values] of Object.entries(this.metric.labels ?? {}))
      all = all.flatMap(each => values.map(value => ({ ...each, [name]: value })))
    for (const each of all) this.#of(each)
  }

  count(labels: Labels): void {
    this.#of(labels).value += 1
  }

  record(labels: Labels, value: number): void {
    const series = this.#of(labels)
    const bucket = this.#bounds.findIndex(bound => value <= bound)
    if (bucket >= 0) series.buckets[bucket] = (series.buckets[bucket] ?? 0) + 1
    series.value += value
    series.count += 1
  }

  samples(): readonly Sample[] {
    if (this.#read) return this.#read()
    const all = [...this.#series.values()]
    if (this.type === 'histogram') return all.flatMap(series => this.#histogram(series))
    return all.map(({ labels, value }) => ({ labels, value })) // copies, because the registry adds its default labels to them
  }

  toString(): string {
    const { prometheus, help, kind } = this.metric
    const lines = this.samples().map(
      ({ labels, value, metricName = prometheus }) => `${metricName}${text(labels)} ${value}`,
    )
    return [`# HELP ${prometheus} ${help}`, `# TYPE ${prometheus} ${kind}`, ...lines, ''].join('\n')
  }

  /** Called by a prom-client registry. */
  async get(): Promise<object> {
    const { name, help, type, aggregator } = this
    return { name, help, type, aggregator, values: this.samples() }
  }

  /** Called by a prom-client registry. Sets every series to zero. */
  reset(): void {
    for (const series of this.#series.values()) {
      series.value = 0
      series.count = 0
      series.buckets.fill(0)
    }
  }

  #of(labels: Labels): Series {
    const key = text(labels)
    let series = this.#series.get(key)
    if (!series) {
      series = { labels, value: 0, buckets: this.#bounds.map(() => 0), count: 0 }
      this.#series.set(key, series)
    }
    return series
  }

  #histogram({ labels, value, buckets, count }: Series): Sample[] {
    const { prometheus } = this.metric
    const [bucket, sum, all] = [`${prometheus}_bucket`, `${prometheus}_sum`, `${prometheus}_count`]
    let below = 0
    const bounded = this.#bounds.map((bound, index) => {
      below += buckets[index] ?? 0
      return { metricName: bucket, labels: { ...labels, le: String(bound) }, value: below }
    })
    return [
      ...bounded,
      { metricName: bucket, labels: { ...labels, le: '+Inf' }, value: count },
      { metricName: sum, labels, value },
      { metricName: all, labels, value: count },
    ]
  }
}

/** The labels as text, such as `{kind="cron",le="5"}`; empty without labels. */
function text(labels: Labels): string {
  const pairs = Object.entries(labels).map(([name, value]) => `${name}="${escaped(value)}"`)
  return pairs.length > 0 ? `{${pairs.join(',')}}` : ''
}

function escaped(value: string): string {
  return value.replace(/[\\"\n]/g, each => (each === '\n' ? '\\n' : `\\${each}`))
}

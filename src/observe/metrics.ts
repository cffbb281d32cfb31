import { LeaseError } from '../contract/errors.ts'

/** One metric, for Prometheus and OpenTelemetry alike. */
export interface Metric {
  readonly kind: 'counter' | 'histogram' | 'gauge'
  /** Its name in OpenTelemetry. */
  readonly otel: string
  /** Its name in Prometheus, derived from `otel`, `unit` and `kind`. */
  readonly prometheus: string
  /** The unit as a UCUM code, as OpenTelemetry requires. */
  readonly unit: string
  readonly help: string
  /** Its own labels, each with the values that start at zero; others may follow. */
  readonly labels?: Readonly<Record<string, readonly string[]>>
  /** Does it describe one lease, so that the user's labels apply? @default true */
  readonly ofLease?: false
  /** Upper bounds of a histogram. */
  readonly buckets?: readonly number[]
  /** How prom-client aggregates worker processes. @default 'sum' */
  readonly aggregator?: 'max' | 'min'
}

// Waits and leases last from milliseconds to a day.
const LONG = [0.005, 0.025, 0.1, 0.5, 1, 5, 15, 60, 300, 900, 3_600, 14_400, 86_400]

export type MetricName =
  | 'acquires'
  | 'lost'
  | 'releaseFailures'
  | 'terms'
  | 'failedRequests'
  | 'staleRequests'
  | 'waitDuration'
  | 'holdDuration'
  | 'latency'
  | 'margin'
  | 'batchSize'
  | 'held'
  | 'waiters'
  | 'oldestWait'
  | 'minTtl'

/** The outcomes that are not error codes. The other outcomes are codes of errors, in capitals. */
const OUTCOMES = ['acquired', 'busy', 'too_many_waiters', 'aborted'] as const

/** The outcome of an acquire call that ended with `error`, if any. */
export function outcomeOf(error?: unknown): string {
  if (error === undefined) return 'acquired'
  if (!LeaseError.is(error)) return 'aborted'
  return error.code === 'BUSY' || error.code === 'TOO_MANY_WAITERS' ? error.code.toLowerCase() : error.code
}

const TABLE: Readonly<Record<MetricName, Omit<Metric, 'prometheus'>>> = {
  acquires: {
    kind: 'counter',
    otel: 'holdfast.lease.acquires',
    unit: '{call}',
    help: 'Acquire calls by outcome: acquired, busy, too_many_waiters, aborted, or the code of an error.',
    labels: { outcome: [...OUTCOMES, 'STORE_UNAVAILABLE', 'OUTCOME_UNKNOWN', 'CLOSED'] },
  },
  lost: {
    kind: 'counter',
    otel: 'holdfast.lease.lost',
    unit: '{lease}',
    help: 'Leases that ended before they were released.',
    labels: { reason: ['expired', 'term', 'gone', 'max_hold'] },
  },
  releaseFailures: {
    kind: 'counter',
    otel: 'holdfast.lease.release_failures',
    unit: '{claim}',
    help: 'Leases and claims whose release the store did not confirm. Their ttl ends them.',
  },
  terms: {
    kind: 'counter',
    otel: 'holdfast.leadership.terms',
    unit: '{term}',
    help: 'Terms of leaders that have ended: the work returned or failed, the lease was lost, or the term was stopped.',
    labels: { outcome: ['returned', 'failed', 'lost', 'stopped'] },
  },
  failedRequests: {
    kind: 'counter',
    otel: 'holdfast.requests.failed',
    unit: '{request}',
    help: 'Requests that failed. A heartbeat is the operation renew. With OUTCOME_UNKNOWN no answer arrived.',
    labels: { operation: ['acquire', 'renew', 'release'], error_type: ['OUTCOME_UNKNOWN', 'STORE_UNAVAILABLE'] },
  },
  staleRequests: {
    kind: 'counter',
    otel: 'holdfast.stale_requests.refused',
    unit: '{request}',
    help: 'Stale requests that a server refused: past their limit (late), or of a withdrawn claim (withdrawn).',
    labels: { reason: ['late', 'withdrawn'] },
    ofLease: false,
  },
  waitDuration: {
    kind: 'histogram',
    otel: 'holdfast.lease.wait.duration',
    unit: 's',
    help: 'Time from the call to the grant.',
    buckets: LONG,
  },
  holdDuration: {
    kind: 'histogram',
    otel: 'holdfast.lease.hold.duration',
    unit: 's',
    help: 'Time from the grant to the release or the loss.',
    buckets: LONG,
  },
  latency: {
    kind: 'histogram',
    otel: 'holdfast.heartbeat.latency',
    unit: 's',
    help: 'Time that a successful renewal took.',
    buckets: [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5],
  },
  margin: {
    kind: 'histogram',
    otel: 'holdfast.lease.margin',
    unit: '1',
    help: 'Share of the ttl that remained when a renewal succeeded. Normally about two thirds.',
    buckets: [0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1],
  },
  batchSize: {
    kind: 'histogram',
    otel: 'holdfast.batch.size',
    unit: '{request}',
    help: 'Requests that shared one script, statement or transaction.',
    ofLease: false,
    buckets: [1, 2, 4, 8, 16, 32, 64, 128, 256],
  },
  held: {
    kind: 'gauge',
    otel: 'holdfast.lease.held',
    unit: '{lease}',
    help: 'Leases that this process holds.',
  },
  waiters: {
    kind: 'gauge',
    otel: 'holdfast.lease.waiters',
    unit: '{call}',
    help: 'Calls of this process that request or wait for a name.',
  },
  oldestWait: {
    kind: 'gauge',
    otel: 'holdfast.lease.oldest_wait',
    unit: 's',
    aggregator: 'max',
    help: 'How long the oldest waiter has waited; 0 without waiters.',
  },
  minTtl: {
    kind: 'gauge',
    otel: 'holdfast.lease.shortest_ttl',
    unit: 's',
    aggregator: 'min',
    help: 'The shortest ttl of the leases that this process holds; absent without leases.',
  },
}

export const METRICS: Readonly<Record<MetricName, Metric>> = Object.fromEntries(
  Object.entries(TABLE).map(([key, metric]) => [key, { ...metric, prometheus: prometheusName(metric) }]),
) as Readonly<Record<MetricName, Metric>>

/** Makes the name for Prometheus: https://prometheus.io/docs/practices/naming */
function prometheusName({ kind, otel, unit }: Pick<Metric, 'kind' | 'otel' | 'unit'>): string {
  const suffix = unit === 's' ? '_seconds' : unit === '1' ? '_ratio' : ''
  return `${otel.replaceAll('.', '_')}${suffix}${kind === 'counter' ? '_total' : ''}`
}

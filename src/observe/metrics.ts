/** One thing that is measured, for Prometheus and OpenTelemetry alike. */
export interface Metric {
  readonly kind: 'counter' | 'histogram' | 'gauge'
  /** As Prometheus and as OpenTelemetry call it. */
  readonly prometheus: string
  readonly otel: string
  /** In the code of UCUM that OpenTelemetry asks for. */
  readonly unit: string
  readonly help: string
  /** Labels of its own with the values that are known before they come; code has others too. */
  readonly labels?: Readonly<Record<string, readonly string[]>>
  /** Is it of one lease, so that the user's labels apply? @default true */
  readonly ofLease?: false
  /** Upper bounds of a histogram. */
  readonly buckets?: readonly number[]
  /** How prom-client joins those of several worker processes. @default 'sum' */
  readonly aggregator?: 'max' | 'min'
}

// Waits and leases last from a moment to a day.
const LONG = [0.005, 0.025, 0.1, 0.5, 1, 5, 15, 60, 300, 900, 3_600, 14_400, 86_400]

export type MetricName =
  | 'acquired'
  | 'notAcquired'
  | 'lost'
  | 'notReleased'
  | 'failedRequests'
  | 'ghosts'
  | 'wait'
  | 'holdTime'
  | 'latency'
  | 'margin'
  | 'batch'
  | 'held'
  | 'waiting'
  | 'oldestWait'
  | 'shortestTtl'

export const METRICS: Readonly<Record<MetricName, Metric>> = {
  acquired: {
    kind: 'counter',
    prometheus: 'lease_acquired_total',
    otel: 'holdfast.lease.acquired',
    unit: '{lease}',
    help: 'Leases that were granted.',
  },
  notAcquired: {
    kind: 'counter',
    prometheus: 'lease_acquire_failed_total',
    otel: 'holdfast.lease.acquire_failed',
    unit: '{call}',
    help: 'Calls that got no lease, by the code of their error; a name that another holds is ACQUIRE_TIMEOUT.',
    labels: { reason: ['ACQUIRE_TIMEOUT', 'STORE_UNAVAILABLE', 'OUTCOME_UNKNOWN', 'CLOSED', 'aborted'] },
  },
  lost: {
    kind: 'counter',
    prometheus: 'lease_lost_total',
    otel: 'holdfast.lease.lost',
    unit: '{lease}',
    help: 'Leases that ended before they were given back.',
    labels: { reason: ['expired', 'gone', 'max_hold'] },
  },
  notReleased: {
    kind: 'counter',
    prometheus: 'lease_release_failed_total',
    otel: 'holdfast.lease.release_failed',
    unit: '{claim}',
    help: 'Leases and claims that the store did not confirm to be given back: they end with their ttl.',
  },
  failedRequests: {
    kind: 'counter',
    prometheus: 'lease_request_failed_total',
    otel: 'holdfast.lease.request_failed',
    unit: '{request}',
    help: 'Requests that failed, heartbeats among them as renew; of OUTCOME_UNKNOWN nobody knows what they did.',
    labels: { request: ['acquire', 'renew', 'release'], code: ['OUTCOME_UNKNOWN', 'STORE_UNAVAILABLE'] },
  },
  ghosts: {
    kind: 'counter',
    prometheus: 'lease_ghosts_refused_total',
    otel: 'holdfast.lease.ghosts_refused',
    unit: '{request}',
    help: 'Requests that a server refused since they reached it late, or after their claim was taken back.',
    labels: { store: ['redis', 'postgres'], reason: ['late', 'withdrawn'] },
    ofLease: false,
  },
  wait: {
    kind: 'histogram',
    prometheus: 'lease_wait_seconds',
    otel: 'holdfast.lease.wait',
    unit: 's',
    help: 'Time from the call to the grant.',
    buckets: LONG,
  },
  holdTime: {
    kind: 'histogram',
    prometheus: 'lease_held_seconds',
    otel: 'holdfast.lease.hold_time',
    unit: 's',
    help: 'Time from the grant until the lease was given back or lost.',
    buckets: LONG,
  },
  latency: {
    kind: 'histogram',
    prometheus: 'heartbeat_latency_seconds',
    otel: 'holdfast.lease.heartbeat.latency',
    unit: 's',
    help: 'Time that a renewal took which succeeded.',
    buckets: [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5],
  },
  margin: {
    kind: 'histogram',
    prometheus: 'lease_margin_ratio',
    otel: 'holdfast.lease.margin',
    unit: '1',
    help: 'What was left of a lease when its renewal came, as a share of the ttl; two thirds are usual.',
    buckets: [0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1],
  },
  batch: {
    kind: 'histogram',
    prometheus: 'lease_batch_size',
    otel: 'holdfast.lease.batch_size',
    unit: '{request}',
    help: 'Requests that shared a script, statement or transaction.',
    ofLease: false,
    buckets: [1, 2, 4, 8, 16, 32, 64, 128, 256],
  },
  held: {
    kind: 'gauge',
    prometheus: 'lease_held',
    otel: 'holdfast.lease.held',
    unit: '{lease}',
    help: 'Leases that this process holds.',
  },
  waiting: {
    kind: 'gauge',
    prometheus: 'lease_waiting',
    otel: 'holdfast.lease.waiting',
    unit: '{call}',
    help: 'Calls of this process that ask or wait for a name.',
  },
  oldestWait: {
    kind: 'gauge',
    prometheus: 'lease_oldest_wait_seconds',
    otel: 'holdfast.lease.oldest_wait',
    unit: 's',
    aggregator: 'max',
    help: 'For how long the call has waited that has waited longest; 0 if none does.',
  },
  shortestTtl: {
    kind: 'gauge',
    prometheus: 'lease_shortest_ttl_seconds',
    otel: 'holdfast.lease.shortest_ttl',
    unit: 's',
    aggregator: 'min',
    help: 'The shortest ttl of the leases that this process holds; absent if it holds none.',
  },
}

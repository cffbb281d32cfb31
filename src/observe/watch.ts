import type { LeaseError } from '../contract/errors.ts'
import { subscribe } from '../contract/events.ts'
import { heldBy } from '../contract/identity.ts'
import type { Lease } from '../contract/lease.ts'
import type { LeaseEvents } from '../contract/lease-events.ts'
import { Labelling, type LabelMapper, type Labels, type Unlabelled } from './labels.ts'
import { type MetricName, outcomeOf } from './metrics.ts'

/** Receives the measurements. */
export interface Recorder {
  /** Called for new lease labels: starts their series at zero. */
  begin?(labels: Labels): void
  /** Increments a counter. */
  count(metric: MetricName, labels: Labels): void
  /** Adds a value to a histogram. */
  record(metric: MetricName, labels: Labels, value: number): void
}

/** The gauges for all leases and calls with the same labels. */
export interface Gauges {
  readonly labels: Labels
  held: number
  waiters: number
  oldestWait: number
  /** The shortest ttl. `undefined` without leases. */
  minTtl: number | undefined
}

export type GaugeName = Exclude<keyof Gauges, 'labels'>

/** A held lease or a waiting call. `since` is a `performance.now()`. */
interface Entry {
  readonly labels: Labels
  readonly since: number
}

interface Holding extends Entry {
  /** The ttl that was granted last. */
  ttl: number
}

const unlabelled: Labels = {}

/** Follows all leases of this process from now on, and reports to a recorder. Durations are in seconds. */
export class Watch {
  readonly #recorder: Recorder
  readonly #labelling: Labelling
  readonly #waits = new Map<string, Entry>()
  /** The leases, by `heldBy`: a reference to a handle would hide that the program has dropped it. */
  readonly #leases = new Map<Pick<Lease, 'ttl'>, Holding>()
  readonly #stops: readonly (() => void)[]
  #gauges: readonly Gauges[] | undefined

  constructor(recorder: Recorder, mapper: LabelMapper | undefined) {
    this.#recorder = recorder
    this.#labelling = new Labelling(mapper, labels => recorder.begin?.(labels))
    const fail = (operation: string, labels: Labels, { code }: LeaseError): void =>
      recorder.count('failedRequests', { ...labels, operation, error_type: code })
    this.#stops = [
      subscribe('acquire_began', event => void this.#waits.set(event.id, this.#entry(event))),
      subscribe('not_acquired', event => this.#onNotAcquired(event)),
      subscribe('lease_acquired', event => this.#onAcquired(event)),
      subscribe('heartbeat', event => this.#onHeartbeat(event)),
      subscribe('heartbeat_failed', ({ lease, error }) => fail('renew', this.#labelsOf(lease), error)),
      subscribe('request_failed', ({ request, error, ...of }) => fail(request, this.#labelling.of(of), error)),
      subscribe('lease_lost', ({ lease, reason }) => {
        recorder.count('lost', { ...this.#labelsOf(lease), reason })
        this.#end(lease)
      }),
      subscribe('term_ended', ({ lease, outcome }) => recorder.count('terms', { ...this.#labelsOf(lease), outcome })),
      subscribe('lease_released', ({ lease }) => this.#end(lease)),
      subscribe('release_failed', ({ lease, ...of }) => {
        recorder.count('releaseFailures', lease ? this.#labelsOf(lease) : this.#labelling.of(of))
        if (lease) this.#end(lease)
      }),
      subscribe('stale_request_refused', ({ reason }) => recorder.count('staleRequests', { reason })),
      subscribe('batch_sent', ({ size }) => recorder.record('batchSize', unlabelled, size)),
    ]
  }

  /** One entry for each set of labels. Computed once per turn of the event loop, not once per gauge. */
  get gauges(): readonly Gauges[] {
    if (this.#gauges) return this.#gauges
    this.#gauges = this.#count()
    queueMicrotask(() => {
      this.#gauges = undefined
    })
    return this.#gauges
  }

  /** Unsubscribes, and forgets all leases and calls. */
  stop(): void {
    for (const stop of this.#stops) stop()
    this.#waits.clear()
    this.#leases.clear()
  }

  #onNotAcquired({ id, error, ...of }: LeaseEvents['not_acquired']): void {
    const { labels } = this.#endWait(id) ?? this.#entry(of)
    this.#recorder.count('acquires', { ...labels, outcome: outcomeOf(error) })
  }

  #onAcquired({ id, lease, waited }: LeaseEvents['lease_acquired']): void {
    const { labels } = this.#endWait(id) ?? this.#entry(lease)
    this.#leases.set(heldBy(lease), { labels, since: performance.now(), ttl: lease.ttl })
    this.#recorder.count('acquires', { ...labels, outcome: outcomeOf() })
    this.#recorder.record('waitDuration', labels, waited / 1_000)
  }

  #onHeartbeat({ lease, latency, margin }: LeaseEvents['heartbeat']): void {
    const labels = this.#labelsOf(lease)
    const holding = this.#leases.get(heldBy(lease))
    this.#recorder.record('latency', labels, latency / 1_000)
    // The margin is a share of the ttl before this renewal: `extend` may have changed the ttl.
    this.#recorder.record('margin', labels, margin / (holding?.ttl ?? lease.ttl))
    if (holding) holding.ttl = lease.ttl
  }

  /** Records the end of a lease. Only the first end counts: a lost lease may also be released. */
  #end(lease: Lease): void {
    const entry = this.#leases.get(heldBy(lease))
    if (!entry) return // already ended, or granted before this subscribed
    this.#leases.delete(heldBy(lease))
    this.#recorder.record('holdDuration', entry.labels, (performance.now() - entry.since) / 1_000)
  }

  #endWait(id: string): Entry | undefined {
    const entry = this.#waits.get(id)
    this.#waits.delete(id)
    return entry
  }

  #entry(of: Unlabelled): Entry {
    return { labels: this.#labelling.of(of), since: performance.now() }
  }

  #labelsOf(lease: Lease): Labels {
    return this.#leases.get(heldBy(lease))?.labels ?? this.#labelling.of(lease)
  }

  #count(): Gauges[] {
    const byLabels = new Map<Labels, Gauges>()
    for (const labels of this.#labelling.known)
      byLabels.set(labels, { labels, held: 0, waiters: 0, oldestWait: 0, minTtl: undefined })
    const now = performance.now()
    for (const { labels, since } of this.#waits.values()) {
      const gauges = byLabels.get(labels) as Gauges
      gauges.waiters += 1
      gauges.oldestWait = Math.max(gauges.oldestWait, (now - since) / 1_000)
    }
    for (const [{ ttl }, { labels }] of this.#leases) {
      const gauges = byLabels.get(labels) as Gauges
      gauges.held += 1
      gauges.minTtl = Math.min(gauges.minTtl ?? Number.POSITIVE_INFINITY, ttl / 1_000)
    }
    return [...byLabels.values()]
  }
}

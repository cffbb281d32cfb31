import { LeaseError } from '../contract/errors.ts'
import { type LeaseEvents, subscribe } from '../contract/events.ts'
import type { Lease } from '../contract/lease.ts'
import { Labelling, type LabelMapper, type Labels } from './labels.ts'
import type { MetricName } from './metrics.ts'

/** Where the numbers go. */
export interface Recorder {
  /** These labels of leases are new: their series begin at zero. */
  begin?(labels: Labels): void
  /** A counter rises by one. */
  count(metric: MetricName, labels: Labels): void
  /** A histogram gets one more value. */
  record(metric: MetricName, labels: Labels, value: number): void
}

/** What the gauges show of the leases and calls that have the same labels. */
export interface Gauges {
  readonly labels: Labels
  held: number
  waiting: number
  oldestWait: number
  /** `undefined` if none is held. */
  shortestTtl: number | undefined
}

export type GaugeName = Exclude<keyof Gauges, 'labels'>

/** Of a lease that is held, or of a call that waits; `since` by `performance.now()`. */
interface Entry {
  readonly labels: Labels
  readonly since: number
}

interface Holding extends Entry {
  /** As it was last granted. */
  ttl: number
}

const unlabelled: Labels = {}

/** Follows all leases of this process from now on, and tells a recorder. In seconds, as both systems want it. */
export class Watch {
  readonly #recorder: Recorder
  readonly #labelling: Labelling
  readonly #waits = new Map<string, Entry>()
  readonly #leases = new Map<Lease, Holding>()
  readonly #stops: readonly (() => void)[]
  #gauges: readonly Gauges[] | undefined

  constructor(recorder: Recorder, mapper: LabelMapper | undefined) {
    this.#recorder = recorder
    this.#labelling = new Labelling(mapper, labels => recorder.begin?.(labels))
    const fail = (request: string, of: { name: string; owner: string }, { code }: LeaseError): void =>
      recorder.count('failedRequests', { ...this.#labelling.of(of), request, code })
    this.#stops = [
      subscribe('acquire_began', event => void this.#waits.set(event.id, this.#entry(event))),
      subscribe('acquire_failed', event => this.#onNotAcquired(event)),
      subscribe('lease_acquired', event => this.#onAcquired(event)),
      subscribe('heartbeat', event => this.#onHeartbeat(event)),
      subscribe('heartbeat_failed', ({ lease, error }) => fail('renew', lease, error)),
      subscribe('request_failed', ({ request, error, ...of }) => fail(request, of, error)),
      subscribe('lease_lost', ({ lease, reason }) => {
        recorder.count('lost', { ...this.#labelsOf(lease), reason })
        this.#end(lease)
      }),
      subscribe('lease_released', ({ lease }) => this.#end(lease)),
      subscribe('release_failed', ({ lease, ...of }) => {
        recorder.count('notReleased', this.#labelling.of(of))
        if (lease) this.#end(lease)
      }),
      subscribe('ghost_refused', labels => recorder.count('ghosts', { ...labels })),
      subscribe('batch_sent', ({ size }) => recorder.record('batch', unlabelled, size)),
    ]
  }

  /** Each set of labels that there was so far. Counted once a turn, however many gauges ask. */
  get gauges(): readonly Gauges[] {
    if (this.#gauges) return this.#gauges
    this.#gauges = this.#count()
    queueMicrotask(() => {
      this.#gauges = undefined
    })
    return this.#gauges
  }

  /** Hears nothing any more, and forgets what it followed. */
  stop(): void {
    for (const stop of this.#stops) stop()
    this.#waits.clear()
    this.#leases.clear()
  }

  #onNotAcquired({ id, error, ...of }: LeaseEvents['acquire_failed']): void {
    const { labels } = this.#endWait(id) ?? this.#entry(of)
    this.#recorder.count('notAcquired', { ...labels, reason: LeaseError.is(error) ? error.code : 'aborted' })
  }

  #onAcquired({ id, lease, waited }: LeaseEvents['lease_acquired']): void {
    const { labels } = this.#endWait(id) ?? this.#entry(lease)
    this.#leases.set(lease, { labels, since: performance.now(), ttl: lease.ttl })
    this.#recorder.count('acquired', labels)
    this.#recorder.record('wait', labels, waited / 1_000)
  }

  #onHeartbeat({ lease, latency, margin }: LeaseEvents['heartbeat']): void {
    const labels = this.#labelsOf(lease)
    const holding = this.#leases.get(lease)
    this.#recorder.record('latency', labels, latency / 1_000)
    // What was left is of the ttl until now: `extend` may have brought another.
    this.#recorder.record('margin', labels, margin / (holding?.ttl ?? lease.ttl))
    if (holding) holding.ttl = lease.ttl
  }

  /** The first end counts: a lease that was lost may be given back as well. */
  #end(lease: Lease): void {
    const entry = this.#leases.get(lease)
    if (!entry) return // from before this watch, or ended
    this.#leases.delete(lease)
    this.#recorder.record('holdTime', entry.labels, (performance.now() - entry.since) / 1_000)
  }

  #endWait(id: string): Entry | undefined {
    const entry = this.#waits.get(id)
    this.#waits.delete(id)
    return entry
  }

  #entry(of: { readonly name: string; readonly owner: string }): Entry {
    return { labels: this.#labelling.of(of), since: performance.now() }
  }

  #labelsOf(lease: Lease): Labels {
    return this.#leases.get(lease)?.labels ?? this.#labelling.of(lease)
  }

  #count(): Gauges[] {
    const byLabels = new Map<Labels, Gauges>()
    for (const labels of this.#labelling.known)
      byLabels.set(labels, { labels, held: 0, waiting: 0, oldestWait: 0, shortestTtl: undefined })
    const now = performance.now()
    for (const { labels, since } of this.#waits.values()) {
      const gauges = byLabels.get(labels) as Gauges
      gauges.waiting += 1
      gauges.oldestWait = Math.max(gauges.oldestWait, (now - since) / 1_000)
    }
    for (const [{ ttl }, { labels }] of this.#leases) {
      const gauges = byLabels.get(labels) as Gauges
      gauges.held += 1
      gauges.shortestTtl = Math.min(gauges.shortestTtl ?? Number.POSITIVE_INFINITY, ttl / 1_000)
    }
    return [...byLabels.values()]
  }
}

import { createHistogram, type RecordableHistogram } from 'node:perf_hooks'
import { events } from '../../contract/events.ts'
import type { Lease } from '../../contract/lease.ts'
import type { Clock } from '../../contract/time.ts'
import type { Advice, Latency } from './advice.ts'
import { LEAST_P99S, leastTtl } from './least-ttl.ts'
import type { LoopDelay } from './loop-delay.ts'
import { joined, type Seen, SharedSeen } from './shared-seen.ts'
import { Silence } from './silence.ts'

/** With fewer the p99 is nothing but the slowest. */
const LEAST_HEARTBEATS = 100

/** Microseconds; what takes longer counts as this. */
const HISTOGRAM = { lowest: 1, highest: 600_000_000, figures: 2 } as const

/** Milliseconds between two warnings, and between two looks whether there must be one. */
const WARN_EVERY = 60_000
const LOOK_EVERY = 1_000

/** Where another thread records what its renewals show. */
export interface SharedPulse {
  readonly latencies: RecordableHistogram
  /** Of a `SharedSeen`. */
  readonly seen: SharedArrayBuffer
}

/** What the renewals of one `Locks` have shown so far. A renewal costs 0.03 us, and 25 KB are kept in all. */
export class Pulse {
  readonly #clock: Clock
  readonly #shortestTtl: number
  readonly #loopDelay: LoopDelay | undefined
  readonly #silence = new Silence()
  /** Of those that were answered, in microseconds. */
  #latencies: RecordableHistogram | undefined
  #failed = 0
  #shared: SharedSeen | undefined
  readonly #warnedOf = new Set<number>()
  #lookAt = Number.NEGATIVE_INFINITY

  /** Records in `latencies` if they are given, of another thread's. */
  constructor(clock: Clock, shortestTtl: number, loopDelay: LoopDelay | undefined, latencies?: RecordableHistogram) {
    this.#clock = clock
    this.#shortestTtl = shortestTtl
    this.#loopDelay = loopDelay
    this.#latencies = latencies
  }

  /** What another thread records there counts here at once: a histogram that is passed on is one for both. */
  share(): SharedPulse {
    this.#latencies ??= createHistogram(HISTOGRAM)
    this.#shared ??= new SharedSeen()
    return { latencies: this.#latencies, seen: this.#shared.memory }
  }

  /** A renewal that was asked for at `sent` is answered. */
  answered(lease: Lease, sent: number, now: number): void {
    const loopDelay = this.#loopDelay
    if (loopDelay?.watches === false && lease.remaining > 0) loopDelay.watch() // this may be the answer to one that is lost
    this.#silence.answered(sent, now)
    this.#latencies ??= createHistogram(HISTOGRAM)
    const latency = now - sent
    const { lowest, highest } = HISTOGRAM
    this.#latencies.record(Math.min(Math.max(Math.round(latency * 1_000), lowest), highest))
    if (isSlow(lease, latency) && events.ttl_too_short.hasSubscribers) this.warn(lease)
  }

  /** A renewal that was asked for at `sent` failed, or was not answered within its limit. */
  failed(lease: Lease, sent: number): void {
    this.#failed += 1
    if (lease.remaining > 0) this.#silence.failed(sent) // else nobody may ask again to hear the silence end
  }

  /** No lease is held. */
  rest(): void {
    this.#loopDelay?.rest()
    this.#silence.end(this.#clock)
  }

  advice(): Advice {
    const heartbeats = this.#latencies?.count ?? 0
    const latency = heartbeats > 0 ? this.#latency() : undefined
    const { failed, silence, loopDelay } = this.seen()
    const seen = { heartbeats, failed, latency, silence, loopDelay }
    if (!latency || heartbeats < LEAST_HEARTBEATS) {
      const reason = `too few heartbeats to tell: ${heartbeats} were answered, and ${LEAST_HEARTBEATS} are needed`
      return { ...seen, leastTtl: undefined, reason }
    }
    const { ttl, reason } = leastTtl({ p99: latency.p99, silence, loopDelay, shortestTtl: this.#shortestTtl })
    return { ...seen, leastTtl: ttl, reason }
  }

  /** With what another thread has seen. */
  seen(now: number = this.#clock.now()): Seen {
    const own = {
      failed: this.#failed,
      silence: this.#silence.longest(now),
      loopDelay: this.#loopDelay?.worst ?? 0,
    }
    return this.#shared ? joined(own, this.#shared.read()) : own
  }

  /** This lease had a renewal that was slow: is its ttl too short? */
  warn(lease: Lease): void {
    const now = this.#clock.now()
    if (now < this.#lookAt || this.#warnedOf.has(lease.ttl)) return
    const { latency, leastTtl } = this.advice()
    if (!latency || leastTtl === undefined) return
    this.#lookAt = now + LOOK_EVERY
    if (!(latency.p99 * LEAST_P99S > lease.ttl)) return
    this.#lookAt = now + WARN_EVERY
    this.#warnedOf.add(lease.ttl)
    events.ttl_too_short.publish({ lease, p99: latency.p99, leastTtl })
  }

  #latency(): Latency | undefined {
    const latencies = this.#latencies
    if (!latencies) return undefined
    const [p50, p99, p999] = [50, 99, 99.9].map(percent => latencies.percentile(percent) / 1_000) as [
      number,
      number,
      number,
    ]
    return { p50, p99, p999, worst: latencies.max / 1_000 }
  }
}

/** If the p99 exceeds the ttl ten times, so does one renewal in a hundred: the others need not ask. */
export function isSlow(lease: Lease, latency: number): boolean {
  return latency * LEAST_P99S > lease.ttl
}

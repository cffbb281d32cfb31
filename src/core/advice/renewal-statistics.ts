import { createHistogram, type RecordableHistogram } from 'node:perf_hooks'
import { events } from '../../contract/events.ts'
import type { Lease } from '../../contract/lease.ts'
import type { Clock } from '../../contract/time.ts'
import type { Advice, Latency } from './advice.ts'
import { LEAST_P99S, LEAST_P999, leastTtl } from './least-ttl.ts'
import type { LoopDelay } from './loop-delay.ts'
import { Unresponsiveness } from './unresponsiveness.ts'

/** The fewest heartbeats for advice. With fewer, the p99 is the slowest one. */
const LEAST_HEARTBEATS = 100

/** The range of the histogram in microseconds. Longer latencies count as `highest`. */
const HISTOGRAM = { lowest: 1, highest: 600_000_000, figures: 2 } as const

/** Milliseconds between two warnings, and between two checks. */
const WARN_EVERY = 60_000
const CHECK_EVERY = 1_000

/** What renewals have shown in addition to their latencies. Times are in milliseconds. */
export interface Disruptions {
  /** Requests that failed or timed out. */
  readonly failed: number
  readonly unresponsiveness: number
  readonly loopDelay: number
}

/** Statistics of the renewals of one `Locks`. A renewal costs 0.03 µs. The memory is 25 KB in total. */
export class RenewalStatistics {
  readonly #clock: Clock
  readonly #minTtl: number
  readonly #loopDelay: LoopDelay | undefined
  readonly #unresponsiveness = new Unresponsiveness()
  /** The latencies in microseconds. */
  #latencies: RecordableHistogram | undefined
  readonly #record: ((own: Disruptions) => void) | undefined
  #failed = 0
  #withThread: ((own: Disruptions) => Disruptions) | undefined
  readonly #warnedOf = new Set<number>()
  #checkAt = Number.NEGATIVE_INFINITY

  /** For another thread, whose histogram is `latencies`, this thread also records its disruptions by `record`. */
  constructor(
    clock: Clock,
    minTtl: number,
    loopDelay: LoopDelay | undefined,
    latencies?: RecordableHistogram,
    record?: (own: Disruptions) => void,
  ) {
    this.#clock = clock
    this.#minTtl = minTtl
    this.#loopDelay = loopDelay
    this.#latencies = latencies
    this.#record = record
  }

  /**
   * The histogram, for another thread. What it records counts here at once. `withThread` adds the disruptions of that
   * thread to those of this one.
   */
  share(withThread: (own: Disruptions) => Disruptions): RecordableHistogram {
    this.#withThread = withThread
    this.#latencies ??= createHistogram(HISTOGRAM)
    return this.#latencies
  }

  /** The renewal sent at `sent` was answered. */
  answered(lease: Lease, sent: number, now: number): void {
    const loopDelay = this.#loopDelay
    if (loopDelay?.isRunning === false && lease.remaining > 0) loopDelay.start() // the answer may come after the loss
    this.#unresponsiveness.answered(sent, now)
    this.#latencies ??= createHistogram(HISTOGRAM)
    const latency = now - sent
    const { lowest, highest } = HISTOGRAM
    this.#latencies.record(Math.min(Math.max(Math.round(latency * 1_000), lowest), highest))
    this.#record?.(this.#own(now))
    if (isSlow(lease, latency) && events.ttl_too_short.hasSubscribers) this.warn(lease)
  }

  /** The renewal sent at `sent` failed or timed out. */
  failed(lease: Lease, sent: number): void {
    this.#failed += 1
    if (lease.remaining > 0) this.#unresponsiveness.failed(sent) // after a loss, perhaps no request follows that ends the period
    this.#record?.(this.#own())
  }

  /** Called when no lease is held. */
  pause(): void {
    this.#loopDelay?.stop()
    this.#unresponsiveness.end(this.#clock)
    this.#record?.(this.#own())
  }

  advice(): Advice {
    const heartbeats = this.#latencies?.count ?? 0
    const latency = heartbeats > 0 ? this.#latency() : undefined
    const own = this.#own()
    const { failed, unresponsiveness, loopDelay } = this.#withThread?.(own) ?? own
    const measured = { heartbeats, failed, latency, unresponsiveness, loopDelay }
    if (!latency || heartbeats < LEAST_HEARTBEATS) {
      const reason = `too few heartbeats: ${heartbeats} were answered, ${LEAST_HEARTBEATS} are needed`
      return { ...measured, leastTtl: undefined, reason }
    }
    const minTtl = this.#minTtl
    const { ttl, reason } = leastTtl({ p99: latency.p99, unresponsiveness, loopDelay, minTtl })
    return { ...measured, leastTtl: ttl, reason }
  }

  /** The disruptions of this thread. */
  #own(now: number = this.#clock.now()): Disruptions {
    const unresponsiveness = this.#unresponsiveness.longest(now)
    return { failed: this.#failed, unresponsiveness, loopDelay: this.#loopDelay?.worst ?? 0 }
  }

  /** Called after a slow renewal of this lease. Emits `ttl_too_short` if its ttl is too short. */
  warn(lease: Lease): void {
    const now = this.#clock.now()
    if (now < this.#checkAt || this.#warnedOf.has(lease.ttl)) return
    const { latency, leastTtl } = this.advice()
    if (!latency || leastTtl === undefined) return
    this.#checkAt = now + CHECK_EVERY
    if (!(latency.p99 * LEAST_P99S > lease.ttl)) return
    this.#checkAt = now + WARN_EVERY
    this.#warnedOf.add(lease.ttl)
    events.ttl_too_short.publish({ lease, p99: latency.p99, leastTtl })
  }

  #latency(): Latency | undefined {
    const latencies = this.#latencies
    if (!latencies) return undefined
    const at = (percent: number): number => latencies.percentile(percent) / 1_000
    const p999 = latencies.count < LEAST_P999 ? undefined : at(99.9)
    return { p50: at(50), p99: at(99), p999, worst: latencies.max / 1_000 }
  }
}

/** Should `warn` be called? Only renewals this slow can make the p99 too high for the ttl. */
export function isSlow(lease: Lease, latency: number): boolean {
  return latency * LEAST_P99S > lease.ttl
}

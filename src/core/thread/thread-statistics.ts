import type { Lease } from '../../contract/lease.ts'
import { type Disruptions, RenewalStatistics } from '../advice/renewal-statistics.ts'
import type { CoreEnvironment } from '../core.ts'
import { merge, SharedDisruptions, type SharedStatistics } from './disruptions.ts'

/** Statistics of the renewals of this thread, in memory that the main thread reads at any time. */
export class ThreadStatistics {
  readonly #statistics: RenewalStatistics
  readonly #shared: SharedDisruptions
  /** The disruptions that an earlier thread recorded. */
  readonly #before: Disruptions

  constructor({ clock, loopDelay }: CoreEnvironment, { latencies, disruptions }: SharedStatistics) {
    this.#statistics = new RenewalStatistics(clock, 0, loopDelay, latencies)
    this.#shared = new SharedDisruptions(disruptions)
    this.#before = this.#shared.read()
  }

  answered(lease: Lease, sent: number, now: number): void {
    this.#statistics.answered(lease, sent, now)
    this.#write(now)
  }

  failed(lease: Lease, sent: number): void {
    this.#statistics.failed(lease, sent)
    this.#write()
  }

  /** Called when no lease is renewed. */
  pause(): void {
    this.#statistics.pause()
    this.#write()
  }

  #write(now?: number): void {
    this.#shared.write(merge(this.#before, this.#statistics.disruptions(now)))
  }
}

import type { Lease } from '../../contract/lease.ts'
import { type Disruptions, merge, SharedDisruptions } from '../advice/disruptions.ts'
import { RenewalStatistics, type SharedStatistics } from '../advice/renewal-statistics.ts'
import type { CoreEnvironment } from '../core.ts'

/** What the renewals of this thread show, there for the main thread to read at any time: as of the last one. */
export class ThreadPulse {
  readonly #pulse: RenewalStatistics
  readonly #shared: SharedDisruptions
  /** Of a thread before this one. */
  readonly #before: Disruptions

  constructor({ clock, loopDelay }: CoreEnvironment, { latencies, disruptions }: SharedStatistics) {
    this.#pulse = new RenewalStatistics(clock, 0, loopDelay, latencies)
    this.#shared = new SharedDisruptions(disruptions)
    this.#before = this.#shared.read()
  }

  answered(lease: Lease, sent: number, now: number): void {
    this.#pulse.answered(lease, sent, now)
    this.#write(now)
  }

  failed(lease: Lease, sent: number): void {
    this.#pulse.failed(lease, sent)
    this.#write()
  }

  /** No lease is renewed. */
  rest(): void {
    this.#pulse.pause()
    this.#write()
  }

  #write(now?: number): void {
    this.#shared.write(merge(this.#before, this.#pulse.disruptions(now)))
  }
}

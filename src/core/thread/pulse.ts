import type { Lease } from '../../contract/lease.ts'
import { Pulse, type SharedPulse } from '../advice/pulse.ts'
import { joined, type Seen, SharedSeen } from '../advice/shared-seen.ts'
import type { CoreEnvironment } from '../core.ts'

/** What the renewals of this thread show, there for the main thread to read at any time: as of the last one. */
export class ThreadPulse {
  readonly #pulse: Pulse
  readonly #shared: SharedSeen
  /** Of a thread before this one. */
  readonly #before: Seen

  constructor({ clock, loopDelay }: CoreEnvironment, { latencies, seen }: SharedPulse) {
    this.#pulse = new Pulse(clock, 0, loopDelay, latencies)
    this.#shared = new SharedSeen(seen)
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
    this.#pulse.rest()
    this.#write()
  }

  #write(now?: number): void {
    this.#shared.write(joined(this.#before, this.#pulse.seen(now)))
  }
}

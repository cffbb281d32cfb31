import type { Clock } from '../../contract/time.ts'

/** The longest time without an answer from a store, in milliseconds. */
export class Unresponsiveness {
  #longest = 0
  /** The time at which the latest answered request was sent. */
  #answered = Number.NEGATIVE_INFINITY
  /** The time at which the first request that has failed since then was sent. */
  #since: number | undefined

  /** The longest period in milliseconds, including the current one. */
  longest(now: number): number {
    return Math.max(this.#longest, now - (this.#since ?? now))
  }

  /** Ends the current period: no more requests follow. Reads the clock only if needed: every release may call this. */
  end(clock: Clock): void {
    if (this.#since === undefined) return
    this.#longest = this.longest(clock.now())
    this.#since = undefined
  }

  answered(sent: number, now: number): void {
    this.#longest = Math.max(this.#longest, now - Math.min(sent, this.#since ?? sent))
    if (sent > this.#answered) this.#answered = sent
    this.#since = undefined
  }

  /** If a later request was answered, this failure is a lost message, not unresponsiveness. */
  failed(sent: number): void {
    if (sent > this.#answered) this.#since ??= sent
  }
}

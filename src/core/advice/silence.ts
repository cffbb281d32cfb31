import type { Clock } from '../../contract/time.ts'

/** The longest time for which a store answered nothing that it was asked, in milliseconds. */
export class Silence {
  #longest = 0
  /** When the latest request that was answered left. */
  #answered = Number.NEGATIVE_INFINITY
  /** When the first request left of those that failed since. */
  #since: number | undefined

  /** With the one that lasts at this moment. */
  longest(now: number): number {
    return Math.max(this.#longest, now - (this.#since ?? now))
  }

  /** Nobody asks from now on. Reads the clock only if it must: every release may come here. */
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

  /** One that left before another that was answered tells of a lost message, and of no silence. */
  failed(sent: number): void {
    if (sent > this.#answered) this.#since ??= sent
  }
}

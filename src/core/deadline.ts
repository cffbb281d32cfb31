import type { LossReason } from '../contract/lease-events.ts'
import type { Grant } from '../contract/store.ts'
import { type Clock, margin } from '../contract/time.ts'
import type { HoldTerms } from './options.ts'

export interface TimedLease {
  /** Called when the deadline or `maxHold` has passed. Often called earlier, such as when the deadline has moved. */
  onTime(): void
}

/** Milliseconds between checks of a long term. Timers do not run while the machine sleeps. */
const CHECK_EVERY = 60_000

/** The time at which a lease ends unless it is renewed, and its timer. A successful renewal sets no timer. */
export class Deadline {
  maxHold: number
  /**
   * The owner, whose method is called. A function would be slower: V8 creates a function that the source assigns to a
   * property in the old generation. Each would keep its lease until the next full collection, which took a quarter of the
   * pairs of 64 tasks.
   */
  lease: TimedLease | undefined
  readonly #clock: Clock
  readonly #background: boolean
  #endsAt: number
  #at: number
  #stopTimer: (() => void) | undefined
  #isOver = false

  /** `sent`: the clock's time before the granted request was sent. */
  constructor(clock: Clock, grant: Grant, sent: number, terms: HoldTerms) {
    const { background, maxHold = Number.POSITIVE_INFINITY } = terms
    this.#clock = clock
    this.#background = background
    this.maxHold = maxHold
    this.#endsAt = sent + maxHold
    this.#at = sent + grant.ttl - margin(grant.ttl)
  }

  get at(): number {
    return this.#at
  }

  get isWatched(): boolean {
    return this.#stopTimer !== undefined
  }

  get remaining(): number {
    return Math.min(this.#at, this.#endsAt) - this.#clock.now()
  }

  /** Says why the lease is over, if it is. `isRenewed`: it has a heartbeat. */
  passed(now: number, isRenewed: boolean): LossReason | undefined {
    if (now >= this.#endsAt && this.#endsAt <= this.#at) return 'max_hold'
    if (now < this.#at) return undefined
    return isRenewed ? 'expired' : 'term'
  }

  /** Makes the lease end within `maxHold` ms from now, even if it is renewed. */
  limit(maxHold: number): void {
    this.maxHold = maxHold
    this.#endsAt = this.#clock.now() + maxHold
    this.watch()
  }

  /** Moves the deadline to `at`, after a successful renewal. */
  move(at: number): void {
    const isSooner = at < this.#at
    this.#at = at
    if (isSooner) this.watch()
  }

  /** Moves the deadline to `at` if that is sooner. */
  shorten(at: number): void {
    if (!(at < this.#at)) return
    this.#at = at
    this.watch()
  }

  watch(): void {
    if (this.#isOver) return
    this.#stopTimer?.()
    const onTime = (): void => {
      this.lease?.onTime()
      this.watch()
    }
    this.#stopTimer = this.#clock.after(Math.min(this.remaining, CHECK_EVERY), onTime, this.#background)
  }

  /** Cancels the timer, and sets no other one. */
  end(): void {
    this.#isOver = true
    this.#stopTimer?.()
  }
}

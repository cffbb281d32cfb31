import type { Clock } from '../contract/time.ts'

/** When a lease ends unless it is renewed, and the one timer for that. A renewal that succeeds sets no timer. */
export class Deadline {
  readonly #clock: Clock
  readonly #background: boolean
  readonly #endsAt: number
  readonly #onTime: () => void
  #at: number
  #stopTimer: (() => void) | undefined
  #isOff = false

  /** `endsAt`: the end whatever is renewed. `onTime` is called when either has passed, or again if it moved meanwhile. */
  constructor(clock: Clock, at: number, endsAt: number, background: boolean, onTime: () => void) {
    this.#clock = clock
    this.#at = at
    this.#endsAt = endsAt
    this.#background = background
    this.#onTime = onTime
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

  /** What has passed, the sooner one first. */
  passed(now: number): 'max_hold' | 'expired' | undefined {
    if (now >= this.#endsAt && this.#endsAt <= this.#at) return 'max_hold'
    return now < this.#at ? undefined : 'expired'
  }

  move(at: number): void {
    const sooner = at < this.#at
    this.#at = at
    if (sooner) this.watch()
  }

  watch(): void {
    if (this.#isOff) return
    this.#stopTimer?.()
    const onTime = (): void => {
      this.#onTime()
      this.watch()
    }
    this.#stopTimer = this.#clock.after(this.remaining, onTime, this.#background)
  }

  /** No timer any more. */
  end(): void {
    this.#isOff = true
    this.#stopTimer?.()
  }
}

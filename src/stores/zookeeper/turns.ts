import type { Claim } from '../../contract/store.ts'
import type { Clock } from '../../contract/time.ts'
import { askAgainAfter, mayTake } from '../shared/queue.ts'
import type { Line } from './nodes.ts'

const MOST_NAMES = 10_000

/** When names fell free for which others wait, as far as this process has seen it. */
export class Turns {
  readonly #clock: Clock
  /** Infinite while the name is held. */
  readonly #freeSince = new Map<string, number>()

  constructor(clock: Clock) {
    this.#clock = clock
  }

  /** Was somebody there when it was last looked at? */
  isBusy(name: string): boolean {
    return this.#freeSince.has(name)
  }

  see(name: string, line: Line): void {
    if (line.nodes.length === 0) {
      this.forget(name)
      return
    }
    const before = this.#freeSince.get(name) ?? Number.POSITIVE_INFINITY
    this.#set(name, line.holder ? Number.POSITIVE_INFINITY : Math.min(before, this.#clock.now()))
  }

  hold(name: string): void {
    this.#set(name, Number.POSITIVE_INFINITY)
  }

  forget(name: string): void {
    this.#freeSince.delete(name)
  }

  /** Have all who stand before had their turns? */
  mayTake(name: string, ahead: number): boolean {
    return mayTake(this.#clock.now(), this.#freeSince.get(name) ?? Number.POSITIVE_INFINITY, ahead)
  }

  /** `remaining`: of the lease, if there is one. */
  retryAfter({ name, ttl, queue }: Claim, ahead: number, remaining: number | undefined): number {
    const now = this.#clock.now()
    const free = this.#freeSince.get(name) ?? now
    return askAgainAfter(now, free === Number.POSITIVE_INFINITY ? now + (remaining ?? ttl) : free, ahead, ttl, queue)
  }

  #set(name: string, freeSince: number): void {
    this.#freeSince.delete(name)
    this.#freeSince.set(name, freeSince)
    if (this.#freeSince.size > MOST_NAMES)
      for (const oldest of this.#freeSince.keys()) return void this.#freeSince.delete(oldest)
  }
}

import type { Claim } from '../../contract/store.ts'
import type { Clock } from '../../contract/time.ts'
import { askAgainAfter, mayTake } from '../shared/queue.ts'
import type { Queue } from './nodes.ts'

const MOST_NAMES = 10_000

/** When names with waiters were freed, as far as this process has seen it. */
export class GracePeriods {
  readonly #clock: Clock
  /** `Infinity` while the name is held. */
  readonly #freeSince = new Map<string, number>()

  constructor(clock: Clock) {
    this.#clock = clock
  }

  /** Did the name have claims when it was last read? */
  isBusy(name: string): boolean {
    return this.#freeSince.has(name)
  }

  see(name: string, queue: Queue): void {
    if (queue.nodes.length === 0) {
      this.forget(name)
      return
    }
    const before = this.#freeSince.get(name) ?? Number.POSITIVE_INFINITY
    this.#set(name, queue.holder ? Number.POSITIVE_INFINITY : Math.min(before, this.#clock.now()))
  }

  hold(name: string): void {
    this.#set(name, Number.POSITIVE_INFINITY)
  }

  forget(name: string): void {
    this.#freeSince.delete(name)
  }

  /** Are the grace periods of all `ahead` over? */
  mayTake(name: string, ahead: number): boolean {
    return mayTake(this.#clock.now(), this.#freeSince.get(name) ?? Number.POSITIVE_INFINITY, ahead)
  }

  /** `remaining`: of the lease, if the name is held. */
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

import type { Claim } from '../../contract/store.ts'
import type { Clock } from '../../contract/time.ts'
import { askAgainAfter, mayTake, roundTrips } from '../shared/queue.ts'
import type { Node, Queue } from './nodes.ts'

const MOST_NAMES = 10_000

interface Seen {
  /** `Infinity` while the name is held. */
  readonly freeSince: number
  /** The name of the first node. While that waits, nobody holds. */
  readonly first: string | undefined
}

/** When names with waiters were freed, as far as this process has seen it. */
export class GracePeriods {
  readonly #clock: Clock
  readonly #seen = new Map<string, Seen>()

  constructor(clock: Clock) {
    this.#clock = clock
  }

  /** Did the name have claims when it was last read? */
  isBusy(name: string): boolean {
    return this.#seen.has(name)
  }

  see(name: string, queue: Queue): void {
    const first = queue.nodes[0]?.name
    if (first === undefined) {
      this.forget(name)
      return
    }
    const seen = this.#seen.get(name)
    // If another is the first now, somebody may have held the name meanwhile, and the grace periods begin anew.
    const before = seen?.first === first ? seen.freeSince : Number.POSITIVE_INFINITY
    const freeSince = queue.holder ? Number.POSITIVE_INFINITY : Math.min(before, this.#clock.now())
    this.#set(name, { freeSince, first })
  }

  hold(name: string): void {
    this.#set(name, { freeSince: Number.POSITIVE_INFINITY, first: undefined })
  }

  forget(name: string): void {
    this.#seen.delete(name)
  }

  /** Are the grace periods of all `ahead` over? */
  mayTake(name: string, ahead: readonly Node[]): boolean {
    const freeSince = this.#seen.get(name)?.freeSince ?? Number.POSITIVE_INFINITY
    return mayTake(this.#clock.now(), freeSince + roundTrips(ahead), ahead.length)
  }

  /** `remaining`: of the lease, if the name is held. */
  retryAfter({ name, ttl, queue }: Claim, ahead: readonly Node[], remaining: number | undefined): number {
    const now = this.#clock.now()
    const free = this.#seen.get(name)?.freeSince ?? now
    const freeAt = free === Number.POSITIVE_INFINITY ? now + (remaining ?? ttl) : free
    return askAgainAfter(now, freeAt + roundTrips(ahead), ahead.length, ttl, queue)
  }

  #set(name: string, seen: Seen): void {
    this.#seen.delete(name)
    this.#seen.set(name, seen)
    if (this.#seen.size > MOST_NAMES) for (const oldest of this.#seen.keys()) return void this.#seen.delete(oldest)
  }
}

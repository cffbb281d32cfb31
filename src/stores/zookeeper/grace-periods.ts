import type { Clock } from '../../contract/time.ts'
import type { Queue } from './nodes.ts'

const MOST_NAMES = 10_000

interface Seen {
  /** This value stays the same until slots are freed or granted, or another waiter becomes the first. */
  readonly state: string
  /** The time when this process first saw that state. */
  readonly since: number
}

/** The times when grace periods began, as far as this process has seen it: never earlier than they really began. */
export class GracePeriods {
  readonly #clock: Clock
  readonly #seen = new Map<string, Seen>()

  constructor(clock: Clock) {
    this.#clock = clock
  }

  /** Did the name have claims when this process last read it? */
  isBusy(name: string): boolean {
    return this.#seen.has(name)
  }

  /** Returns when the grace period of the first waiter began. */
  see(name: string, queue: Queue): number {
    const now = this.#clock.now()
    if (queue.nodes.length === 0) {
      this.forget(name)
      return now
    }
    const first = queue.waiters.find(node => !queue.isPassed(node))
    // Each grant to a waiter changes the mark. While a waiter is ahead, only waiters are granted.
    const state = `${queue.parent.mark} ${queue.holders.length} ${first?.name}`
    const seen = this.#seen.get(name)
    const since = seen?.state === state ? seen.since : now
    this.#set(name, { state, since })
    return since
  }

  hold(name: string): void {
    if (!this.isBusy(name)) this.#set(name, { state: '', since: this.#clock.now() })
  }

  forget(name: string): void {
    this.#seen.delete(name)
  }

  #set(name: string, seen: Seen): void {
    this.#seen.delete(name)
    this.#seen.set(name, seen)
    if (this.#seen.size > MOST_NAMES) for (const oldest of this.#seen.keys()) return void this.#seen.delete(oldest)
  }
}

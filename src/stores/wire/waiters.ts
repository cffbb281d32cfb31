import type { Wake } from '../../contract/store.ts'
import type { Clock } from '../../contract/time.ts'

/**
 * The largest number of early notifications that are kept. Nearly all of them are for claims that were granted in the same
 * call, or withdrawn. The newest are those of claims that will be watched.
 */
const MOST_EARLY = 1_000

/** The waiters of this process, by the id of their claim. A notification that arrives before its waiter is kept for it. */
export class Waiters {
  readonly #clock: Pick<Clock, 'now'>
  readonly #wakes = new Map<string, Wake>()
  /** The times to ask, for claims that were notified and are not watched yet. Their busy answer is still being read. */
  readonly #early = new Map<string, number>()

  constructor(clock: Pick<Clock, 'now'>) {
    this.#clock = clock
  }

  get size(): number {
    return this.#wakes.size
  }

  /**
   * From now until `signal` aborts, `wake` is called as a hint. Returns a function that ends this sooner. `ended` is called
   * in either case, because a separate listener would take 300 bytes.
   */
  add(id: string, wake: Wake, signal: AbortSignal, ended?: () => void): () => void {
    const remove = (): void => {
      if (this.#wakes.get(id) === wake) this.#wakes.delete(id)
      ended?.()
    }
    if (signal.aborted) return remove
    this.#wakes.set(id, wake)
    signal.addEventListener('abort', remove, { once: true })
    const early = this.#early.get(id)
    this.#early.delete(id)
    if (early !== undefined) this.notify(id, early - this.#clock.now())
    return remove
  }

  /** Notifies the waiter, which asks after `delay` ms. */
  notify(id: string, delay: number): void {
    const wake = this.#wakes.get(id)
    if (wake) wake(Math.max(delay, 0))
    else this.#early.set(id, Math.min(this.#early.get(id) ?? Number.POSITIVE_INFINITY, this.#clock.now() + delay))
    if (this.#early.size > MOST_EARLY) for (const oldest of this.#early.keys()) return void this.#early.delete(oldest)
  }

  /** Notifies all waiters, which ask now. */
  notifyAll(): void {
    for (const wake of [...this.#wakes.values()]) wake()
  }

  clear(): void {
    this.#wakes.clear()
    this.#early.clear()
  }
}

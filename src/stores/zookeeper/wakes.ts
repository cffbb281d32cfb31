import type { Wake } from '../../contract/store.ts'

/** Those that somebody will watch are the newest. */
const MOST_EARLY = 1_000

/** Who of this process waits, and who was told before it was watched. */
export class Wakes {
  readonly #wakes = new Map<string, Wake>()
  /** When to ask, of those who are not watched yet. */
  readonly #early = new Map<string, number>()

  add(id: string, wake: Wake, signal: AbortSignal): void {
    if (signal.aborted) return
    this.#wakes.set(id, wake)
    const forget = (): void => {
      if (this.#wakes.get(id) === wake) this.#wakes.delete(id)
    }
    signal.addEventListener('abort', forget, { once: true })
    const early = this.#early.get(id)
    this.#early.delete(id)
    if (early !== undefined) this.wake(id, Math.max(early - performance.now(), 0))
  }

  wake(id: string, delay: number): void {
    const wake = this.#wakes.get(id)
    if (wake) {
      wake(delay)
      return
    }
    this.#early.set(id, performance.now() + delay)
    if (this.#early.size > MOST_EARLY) for (const oldest of this.#early.keys()) return void this.#early.delete(oldest)
  }

  clear(): void {
    this.#wakes.clear()
    this.#early.clear()
  }
}

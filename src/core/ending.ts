import type { LeaseEnd } from '../contract/lease.ts'
import type { Clock } from '../contract/time.ts'

/** How one lease ended, for those who wait for that. */
export class Ending {
  #end: LeaseEnd | undefined
  #promise: PromiseWithResolvers<LeaseEnd> | undefined

  get promise(): Promise<LeaseEnd> {
    this.#promise ??= Promise.withResolvers()
    if (this.#end) this.#promise.resolve(this.#end)
    return this.#promise.promise
  }

  /** The first end counts, and is the answer. */
  settle(end: LeaseEnd): LeaseEnd {
    this.#end ??= end
    this.#promise?.resolve(this.#end)
    return this.#end
  }
}

/** What the withdrawal answers, or `otherwise` after `limit` ms; then it continues in the background. */
export function within(
  clock: Clock,
  limit: number,
  withdrawal: Promise<LeaseEnd>,
  otherwise: LeaseEnd,
): Promise<LeaseEnd> {
  return new Promise(resolve => {
    // Answers that came while the event loop was blocked are read before they count as missing.
    const isOver = (): void => {
      stopTimer = clock.after(0, () => resolve(otherwise))
    }
    let stopTimer = clock.after(limit, isOver)
    void withdrawal.then(end => {
      stopTimer()
      resolve(end)
    })
  })
}

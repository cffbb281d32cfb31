import type { LeaseEnd } from '../contract/lease.ts'
import type { Clock } from '../contract/time.ts'

/** How one lease ended, for callers that wait for it. */
export class Ending {
  #end: LeaseEnd | undefined
  #promise: PromiseWithResolvers<LeaseEnd> | undefined

  get promise(): Promise<LeaseEnd> {
    this.#promise ??= Promise.withResolvers()
    if (this.#end) this.#promise.resolve(this.#end)
    return this.#promise.promise
  }

  /** The first end counts, and is returned. */
  settle(end: LeaseEnd): LeaseEnd {
    this.#end ??= end
    this.#promise?.resolve(this.#end)
    return this.#end
  }
}

/** The result of the withdrawal, or `otherwise` after `limit` ms. The withdrawal then continues in the background. */
export function within(
  clock: Clock,
  limit: number,
  withdrawal: Promise<LeaseEnd>,
  otherwise: LeaseEnd,
): Promise<LeaseEnd> {
  return new Promise(resolve => {
    // First read the answers that came while the event loop was blocked.
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

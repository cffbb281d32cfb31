import type { LeaseEnd } from '../contract/lease.ts'

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

import type { LeaseError } from '../contract/errors.ts'
import type { LeaseEnd } from '../contract/lease.ts'
import { AbortSource } from './abort-source.ts'

/** What a call holds, from the grant to the end: one lease, or several that end together. */
export abstract class Held {
  /** Why it was lost, if a loss was detected. */
  loss: LeaseError | undefined
  protected releasing: Promise<LeaseEnd> | undefined
  protected readonly aborting: AbortSource = new AbortSource()
  #end: LeaseEnd | undefined
  #ended: PromiseWithResolvers<LeaseEnd> | undefined

  abstract get remaining(): number
  abstract assertHeld(): void
  abstract extend(ttl?: number): Promise<number>
  abstract release(): Promise<LeaseEnd>

  /** Detects a loss at once, without waiting for a timer. */
  abstract check(): LeaseError | undefined

  /** A program that waits for the end has not lost the handle. */
  protected abstract onAwaited(): void

  get signal(): AbortSignal {
    this.check()
    return this.aborting.signal
  }

  get ended(): Promise<LeaseEnd> {
    this.check()
    this.onAwaited()
    this.#ended ??= Promise.withResolvers()
    if (this.#end) this.#ended.resolve(this.#end)
    return this.#ended.promise
  }

  /** Releases, and answers why it was lost if it was; never rejects. */
  async end(): Promise<LeaseError | undefined> {
    return (await this.release()) === 'lost' ? this.loss : undefined
  }

  /** Aborts the signal while it is held: the work should end before the release. */
  abort(reason: unknown): void {
    this.aborting.abort(reason)
  }

  /** The first end counts, and is returned. */
  protected settle(end: LeaseEnd): LeaseEnd {
    this.#end ??= end
    this.#ended?.resolve(this.#end)
    return this.#end
  }
}

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

  /** Called when the program awaits the end: then it has not lost the handle. */
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

  /** Releases, and resolves to the loss if there was one. Never rejects. */
  async end(): Promise<LeaseError | undefined> {
    return (await this.release()) === 'lost' ? this.loss : undefined
  }

  /** Aborts the signal while the lease is held, so that the work ends before the release. */
  abort(reason: unknown): void {
    this.aborting.abort(reason)
  }

  /** Records how it ended, and returns the end that was recorded first. */
  protected settle(end: LeaseEnd): LeaseEnd {
    this.#end ??= end
    this.#ended?.resolve(this.#end)
    return this.#end
  }
}

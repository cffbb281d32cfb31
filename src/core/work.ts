import { invalid } from '../contract/check.ts'
import { LeaseError } from '../contract/errors.ts'
import type { Closing } from './closing.ts'
import type { Signals } from './signals.ts'

/** What `using` holds while its work runs: a lease, or several that end together. */
export interface Held<Handle> {
  /** For the work. */
  readonly handle: Handle
  readonly signal: AbortSignal
  /** Aborts the signal: the work should end before the release. */
  abort(reason: unknown): void
  /** Releases, and answers why it was lost if it was; never rejects. */
  end(): Promise<LeaseError | undefined>
}

/** Runs the works of `using` of one `Locks`. */
export class Works {
  readonly #closing: Closing
  readonly #signals: Signals

  constructor(closing: Closing, signals: Signals) {
    this.#closing = closing
    this.#signals = signals
  }

  /** Runs `work`, then releases. Settles as `using` promises. `signal` is the caller's. */
  async run<Handle, Result>(
    held: Held<Handle>,
    work: (handle: Handle) => PromiseLike<Result>, // JavaScript may return a plain value
    signal: AbortSignal | undefined,
  ): Promise<Result> {
    const stop = this.#signals.onAbort(signal, reason => held.abort(reason))
    this.#closing.beginBody()
    let lost: LeaseError | undefined
    let result: Result
    try {
      result = await work(held.handle)
    } catch (error) {
      const { aborted, reason } = held.signal
      throw aborted && isAbort(error, reason) ? reason : error
    } finally {
      stop()
      const ending = held.end()
      this.#closing.endBody()
      lost = await ending
    }
    if (lost) throw new LeaseError(lost.code, lost.message, { lease: lost.lease, cause: lost, result })
    return result
  }
}

/** Throws `INVALID_ARGUMENT` unless the work is a function. `which` argument of `using` it is. */
export function checkWork(work: unknown, which: 'first' | 'second'): void {
  if (typeof work !== 'function')
    throw invalid(`using needs the work as its ${which} argument: a function of the lease`)
}

/** Did the work fail because it was aborted? Many functions throw an AbortError of their own instead of the reason. */
function isAbort(error: unknown, reason: unknown): boolean {
  return error === reason || (error instanceof Error && (error.name === 'AbortError' || error.cause === reason))
}

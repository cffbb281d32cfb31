import { invalid } from '../contract/check.ts'
import { LeaseError } from '../contract/errors.ts'
import type { LeaseRecord } from '../contract/store.ts'
import { surround } from '../contract/surrounding.ts'
import type { Closing } from './closing.ts'
import type { Held } from './held.ts'
import type { Signals } from './signals.ts'

/** What a call acquired: a lease, or several that end together. */
export interface Holding<Handle> extends Pick<Held, 'signal' | 'abort' | 'end'> {
  /** The handle that the caller gets. */
  readonly handle: Handle
}

/** The result of a call that did not acquire in time. */
export interface NotAcquired {
  /** Makes the `BUSY` error. */
  timeout(): LeaseError
}

/** The result of a call that runs its work only if no waiting is needed. */
export type Tried<Result> =
  | { readonly ran: true; readonly result: Result }
  | {
      readonly ran: false
      readonly why: 'held'
      /** One of the holders, if the store can tell. */
      readonly holder: LeaseRecord | undefined
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
    held: Holding<Handle>,
    work: Work<Handle, Result>, // JavaScript may return a plain value
    signal: AbortSignal | undefined,
  ): Promise<Result> {
    const stop = this.#signals.onAbort(signal, reason => held.abort(reason))
    this.#closing.beginBody()
    let lost: LeaseError | undefined
    let result: Result
    try {
      result = await surround(held.handle, work)
    } catch (error) {
      const { aborted, reason } = held.signal
      throw aborted && isAbort(error, reason) ? reason : error
    } finally {
      stop()
      const ending = held.end()
      this.#closing.endBody()
      lost = await ending
    }
    if (lost) throw new LeaseError(lost.code, lost.message, { leaseName: lost.leaseName, cause: lost, result })
    return result
  }

  /** Runs `work` unless the name was busy. */
  async tryRun<Handle, Result>(
    held: Holding<Handle> | NotAcquired,
    work: Work<Handle, Result>,
    signal: AbortSignal | undefined,
  ): Promise<Tried<Result>> {
    if ('handle' in held) return { ran: true, result: await this.run(held, work, signal) }
    return { ran: false, why: 'held', holder: held.timeout().holder }
  }
}

/** The end of the arguments of a call that runs work: the work, and the options before it. */
export type WorkArguments<Options, Handle, Result> =
  | readonly [work: Work<Handle, Result>]
  | readonly [options: Options | undefined, work: Work<Handle, Result>]

/** The work of a lease. It returns a promise, so that a forgotten `return` is a type error. */
export type Work<Handle, Result> = (handle: Handle) => PromiseLike<Result>

/**
 * Throws `INVALID_ARGUMENT` unless the work is a function and comes last. `call`: how it is called, such as `using(name`.
 */
export function workOf<Options, Handle, Result>(
  call: string,
  args: WorkArguments<Options, Handle, Result>,
): { readonly options: Options | undefined; readonly work: Work<Handle, Result> } {
  const [first, second] = args
  const [options, work] = args.length > 1 ? [first, second] : [undefined, first]
  if (typeof work === 'function' && typeof options !== 'function')
    return { options: options as Options | undefined, work: work as Work<Handle, Result> }
  const separator = call.endsWith('(') ? '' : ', '
  throw invalid(
    `the work must be a function and come last: ${call}${separator}options, work) or ${call}${separator}work)`,
  )
}

/** Did the work fail because it was aborted? Many functions throw an AbortError of their own instead of the reason. */
function isAbort(error: unknown, reason: unknown): boolean {
  return error === reason || (error instanceof Error && (error.name === 'AbortError' || error.cause === reason))
}

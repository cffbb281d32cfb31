import { invalid } from '../contract/check.ts'
import type { LeaseError } from '../contract/errors.ts'
import type { LeaseRecord } from '../contract/store.ts'
import type { Held } from './held.ts'

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

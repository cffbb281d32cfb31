import { checkKeys, checkText, invalid, show } from '../contract/check.ts'
import type { Holder, Mark, Marks } from './mark.ts'

/** The options of every fence. */
export interface FenceOptions {
  /** What the fence guards. Each resource has one high-water mark. @default the name of the lease */
  readonly resource?: string | undefined
  /**
   * Compared before the token. After a move to another store or a restored backup, `holdfast fence advance` prints the
   * next one.
   * @default 0
   */
  readonly epoch?: number | undefined
}

/** A stored high-water mark. */
export interface MarkRecord extends Mark {
  readonly resource: string
  /** What this mark guards, where an engine keeps several for one resource. */
  readonly part?: string | undefined
  /** When its token last changed, in milliseconds since 1970 by the engine's clock. */
  readonly raisedAt: number
}

/** Stored marks. They can be listed, and changed by hand, which is dangerous. */
export interface KeptMarks extends Marks {
  /** The marks of resources that begin with `prefix`, sorted by resource. @param prefix @default '' */
  list(prefix?: string): Promise<readonly MarkRecord[]>
  /**
   * Begins the next epoch of a resource and resolves to its number. `undefined`: the resource has no mark. From then on
   * every fence with a lower `epoch` is refused. Before you call it, make sure that no earlier holder is still running.
   */
  advance(resource: string): Promise<number | undefined>
  /**
   * Deletes marks that were last raised more than `olderThan` milliseconds ago, and resolves to their number. A holder
   * that has been paused for longer can then write again.
   */
  prune(olderThan: number, prefix?: string): Promise<number>
}

/** The mark that a holder presents to a resource. */
export interface Presented {
  readonly resource: string
  readonly mark: Mark
}

/** The largest value of a `bigint` column. */
const LARGEST_TOKEN = 2n ** 63n - 1n
const LAST_EPOCH = 2 ** 31 - 1

/** Throws `INVALID_ARGUMENT` for invalid options of a fence. */
export function checkFence(options: FenceOptions, known: readonly string[], what: string): void {
  checkKeys(options, new Set(['resource', 'epoch', ...known]), what)
  const { resource, epoch } = options
  if (resource !== undefined) checkResource(resource)
  if (epoch !== undefined) checkEpoch(epoch)
}

/** Throws `INVALID_ARGUMENT` unless it is 1 to 255 bytes of text. */
export function checkResource(resource: unknown): asserts resource is string {
  checkText(resource, 'the resource')
  if (resource === '') throw invalid('the resource is empty: give 1 to 255 bytes of text')
}

/** Throws `INVALID_ARGUMENT` for an invalid mark. */
export function checkMark({ epoch, token }: Mark): void {
  checkEpoch(epoch)
  if (typeof token !== 'bigint' || token < 0n || token > LARGEST_TOKEN)
    throw invalid(`the token must be a bigint from 0 to 2^63 - 1, such as lease.token, not ${show(token)}`)
}

function checkEpoch(epoch: unknown): void {
  if (Number.isInteger(epoch) && (epoch as number) >= 0 && (epoch as number) <= LAST_EPOCH) return
  throw invalid(`the epoch must be a whole number from 0 to ${LAST_EPOCH}, not ${show(epoch)}`)
}

/** What a holder presents. Throws `INVALID_ARGUMENT` if `holder` is not one, and what `assertNotEnded` throws. */
export function presentedBy(holder: Holder, { resource, epoch = 0 }: FenceOptions): Presented {
  if (typeof holder !== 'object' || holder === null)
    throw invalid(`a fence needs a lease or its { name, token }, not ${show(holder)}`)
  const mark = { epoch, token: holder.token }
  checkMark(mark)
  const name = resource ?? holder.name
  checkResource(name)
  assertNotEnded(holder)
  return { resource: name, mark }
}

/**
 * Throws `LEASE_LOST`, `MAX_HOLD` or `CLOSED` for a `Lease` that has ended in this process. Of a plain name and token this
 * process knows nothing, so the resource decides.
 */
export function assertNotEnded(holder: Holder): void {
  if ('assertHeld' in holder && typeof holder.assertHeld === 'function') holder.assertHeld()
}

/**
 * Settles as `promise` does, or rejects with the reason of the signal when it aborts, unless `isTooLate()` by then. The
 * work behind the promise continues.
 */
export function abortable<T>(
  promise: Promise<T>,
  signal: AbortSignal | undefined,
  isTooLate: () => boolean = () => false,
): Promise<T> {
  if (!signal) return promise
  return new Promise((resolve, reject) => {
    const stop = (): void => {
      if (!isTooLate()) reject(signal.reason)
    }
    signal.addEventListener('abort', stop, { once: true })
    if (signal.aborted) stop()
    promise.then(resolve, reject).finally(() => signal.removeEventListener('abort', stop))
  })
}

/** Throws `INVALID_ARGUMENT` unless it is an age in milliseconds. */
export function checkAge(olderThan: unknown): asserts olderThan is number {
  if (Number.isSafeInteger(olderThan) && (olderThan as number) >= 0) return
  throw invalid(`the age of marks must be a whole number of milliseconds, 0 or more, not ${show(olderThan)}`)
}

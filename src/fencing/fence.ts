import { checkKeys, checkText, invalid, show } from '../contract/check.ts'
import type { Holder, Mark, Marks } from './mark.ts'

/** What every fence can be told. */
export interface FenceOptions {
  /** What is guarded: one mark is kept for each. @default the name of the lease */
  readonly resource?: string | undefined
  /**
   * Compared before the token, and told by `holdfast fence advance` after a move to another store or a restored backup.
   * @default 0
   */
  readonly lineage?: number | undefined
}

/** A mark as it is kept. */
export interface MarkRecord extends Mark {
  readonly resource: string
  /** Where one engine keeps several for a resource: what they are for. */
  readonly part?: string | undefined
  /** When it was last raised to another token, in milliseconds since 1970 by the engine's clock. */
  readonly raisedAt: number
}

/** Marks that can be looked at, and, which is dangerous, be changed by hand. */
export interface KeptMarks extends Marks {
  /** Those of resources that begin with `prefix`, by resource. @param prefix @default '' */
  list(prefix?: string): Promise<readonly MarkRecord[]>
  /**
   * Begins the next lineage of a resource and resolves to its number; `undefined` if it has no mark. Refuses every holder
   * of fences with a lower `lineage`, until they are told the new one. Only when no holder of before is at work.
   */
  advance(resource: string): Promise<number | undefined>
  /**
   * Forgets marks that were not raised for so many milliseconds, and resolves to how many. A holder that has been
   * stopped since before can write again.
   */
  prune(olderThan: number, prefix?: string): Promise<number>
}

/** What one holder shows to one resource. */
export interface Showing {
  readonly resource: string
  readonly mark: Mark
}

/** As the column of a database holds it. */
const LONGEST_TOKEN = 2n ** 63n - 1n
const LAST_LINEAGE = 2 ** 31 - 1

/** Throws `INVALID_ARGUMENT` for options of a fence that cannot be right. */
export function checkFence(options: FenceOptions, known: readonly string[], what: string): void {
  checkKeys(options, new Set(['resource', 'lineage', ...known]), what)
  const { resource, lineage } = options
  if (resource !== undefined) checkResource(resource)
  if (lineage !== undefined) checkLineage(lineage)
}

/** Throws `INVALID_ARGUMENT` unless it is 1 to 255 bytes of text. */
export function checkResource(resource: unknown): asserts resource is string {
  checkText(resource, 'the resource')
  if (resource === '') throw invalid('the resource is empty: give 1 to 255 bytes of text')
}

/** Throws `INVALID_ARGUMENT` for what cannot be a mark. */
export function checkMark({ lineage, token }: Mark): void {
  checkLineage(lineage)
  if (typeof token !== 'bigint' || token < 0n || token > LONGEST_TOKEN)
    throw invalid(`a token is a bigint from 0 to 2^63 - 1, such as lease.token, not ${show(token)}`)
}

function checkLineage(lineage: unknown): void {
  if (Number.isInteger(lineage) && (lineage as number) >= 0 && (lineage as number) <= LAST_LINEAGE) return
  throw invalid(`the lineage must be a whole number from 0 to ${LAST_LINEAGE}, not ${show(lineage)}`)
}

/** What a holder shows. Throws `INVALID_ARGUMENT` if it is not a holder, and throws what `assertNotOver` throws. */
export function showingOf(holder: Holder, { resource, lineage = 0 }: FenceOptions): Showing {
  if (typeof holder !== 'object' || holder === null)
    throw invalid(`a fence needs a lease, or its { name, token }, not ${show(holder)}`)
  const mark = { lineage, token: holder.token }
  checkMark(mark)
  const name = resource ?? holder.name
  checkResource(name)
  assertNotOver(holder)
  return { resource: name, mark }
}

/**
 * Throws `LEASE_LOST`, `MAX_HOLD` or `CLOSED` for a `Lease` that this process knows to be over. For a bare name and token
 * this process knows nothing: the resource decides.
 */
export function assertNotOver(holder: Holder): void {
  if ('assertHeld' in holder && typeof holder.assertHeld === 'function') holder.assertHeld()
}

/**
 * Rejects with the signal's reason as soon as that aborts, unless `isTooLate` by then: whoever waits is let go, and the
 * promise goes on by itself.
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

/** Throws `INVALID_ARGUMENT` for what is no age in milliseconds. */
export function checkAge(olderThan: unknown): asserts olderThan is number {
  if (Number.isSafeInteger(olderThan) && (olderThan as number) >= 0) return
  throw invalid(`the age of marks is a whole number of milliseconds, not ${show(olderThan)}`)
}

import { checkKeys, checkSignal, checkText, checkWhole, invalid, show } from '../contract/check.ts'
import { type Work, type WorkArguments, workOf } from '../core/work.ts'
import type { Holder, Holders, Mark, Marks, Shown } from './mark.ts'
import { isAlone } from './rule.ts'
import { areSlots, parseToken } from './shown.ts'

/** The options of every fence. */
export interface FenceOptions {
  /** What the fence guards. Each resource has high-water marks of its own. @default the name of the lease */
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
  /** A slot of permits, or `r0` to `r15` for the readers in each 16th slot. `undefined`: it is the mark of the name. */
  readonly slot?: string | undefined
  /** What this mark guards, where an engine keeps several for one resource. */
  readonly part?: string | undefined
  /** When its token last changed, in milliseconds since 1970 by the engine's clock. */
  readonly raisedAt: number
}

/** Stored marks. They can be listed, and changed by hand, which is dangerous. */
export interface KeptMarks extends Marks {
  /** The marks of resources that begin with `prefix`, sorted by resource and slot. @param prefix @default '' */
  list(prefix?: string): Promise<readonly MarkRecord[]>
  /**
   * Begins the next epoch of a resource and resolves to its number. `undefined`: the resource has no mark. From then on
   * every fence with a lower `epoch` is refused. Before you call it, make sure that no earlier holder is still running.
   */
  advance(resource: string): Promise<number | undefined>
  /**
   * Deletes the marks of resources of which none was raised within the last `olderThan` milliseconds, and resolves to
   * their number. A holder that has been paused for longer can then write again.
   */
  prune(olderThan: number, prefix?: string): Promise<number>
}

/** The options of one call of a fence. */
export interface FenceCallOptions {
  /** Ends the wait. After the work of a transaction has started, it is only checked before the commit. */
  readonly signal?: AbortSignal | undefined
}

/**
 * Commits the transactions of a holder only as long as the fence has seen no newer one. `Transaction` is what `work`
 * gets, `Any` what `check` accepts.
 */
export interface TransactionFence<Transaction, Any> {
  /**
   * Begins a transaction, checks the token of the lease, or of each lease of a set, runs `work`, and commits.
   * Transactions of one resource run one after the other, except those of permits of different slots and of readers. If it
   * rejects, nothing was written, except after `OUTCOME_UNKNOWN`, or if `work` ended the transaction itself. It rejects
   * with the error of `work`, or with:
   *
   * - `STALE_TOKEN`: a newer holder was seen.
   * - `LEASE_LOST`, `MAX_HOLD`, `CLOSED`: the lease has ended in this process, also just before the commit.
   * - `STORE_UNAVAILABLE`: the mark was locked for too long, or the database cannot be reached.
   * - `INVALID_ARGUMENT`: `work` committed or rolled back, so what it wrote after that was not guarded; or the
   *   connection is in a transaction already.
   * - `OUTCOME_UNKNOWN`: the connection ended during the commit, or the commit was not answered within 30 s.
   */
  transaction<Result>(lease: Holder | Holders, work: Work<Transaction, Result>): Promise<Result>
  transaction<Result>(
    lease: Holder | Holders,
    options: FenceCallOptions | undefined,
    work: Work<Transaction, Result>,
  ): Promise<Result>
  /** The check for a transaction that you began: call it first. Roll the transaction back if it rejects. */
  check(lease: Holder | Holders, transaction: Any): Promise<void>
  /**
   * Shows the token without writing: every older holder is refused from now on. Call it before you read what you will
   * change. Rejects as `transaction` does.
   */
  touch(lease: Holder | Holders, options?: FenceCallOptions): Promise<void>
  /** The stored marks. Other fences can keep theirs here. */
  readonly marks: KeptMarks
  /** Creates what the marks need if it is missing. It may be called repeatedly. */
  install(): Promise<void>
}

/** The mark that a holder presents to a resource. */
export interface Presented {
  readonly resource: string
  readonly mark: Shown
  /** The name of the lease. */
  readonly name?: string | undefined
}

/** The largest value of a `bigint` column. */
const LARGEST_TOKEN = 2n ** 63n - 1n
const LAST_EPOCH = 2 ** 31 - 1

/** Throws `INVALID_ARGUMENT` for invalid options of a fence. */
export function checkFence(options: FenceOptions, known: readonly string[], what: string): void {
  checkKeys(options, new Set(['resource', 'epoch', ...known]), what)
  const { resource, epoch } = options
  if (resource !== undefined) checkResource(resource)
  if (epoch !== undefined) checkWhole(epoch, 'the epoch', 0, LAST_EPOCH)
}

/** Throws `INVALID_ARGUMENT` unless it is 1 to 255 bytes of text. */
export function checkResource(resource: unknown): asserts resource is string {
  checkText(resource, 'the resource')
  if (resource === '') throw invalid('the resource is empty: give 1 to 255 bytes of text')
}

/** Throws `INVALID_ARGUMENT` for an invalid mark. */
export function checkMark({ epoch, token, limit, slots }: Shown): void {
  checkWhole(epoch, 'the epoch', 0, LAST_EPOCH)
  if (typeof token !== 'bigint' || token < 0n || token > LARGEST_TOKEN)
    throw invalid(`the token must be a bigint from 0 to 2^63 - 1, such as lease.token, not ${show(token)}`)
  if ((limit === undefined && slots === undefined) || areSlots({ limit, slots })) return
  throw invalid(
    `a permit is shown with its limit and slots, such as { limit: 5, slots: [0, 2] }, not ${show({ limit, slots })}`,
  )
}

const callKeys = new Set(['signal'])

/** The signal of a call. Throws `INVALID_ARGUMENT` for any other option. */
export function signalOf(options: FenceCallOptions | undefined = {}, call: string): AbortSignal | undefined {
  checkKeys(options, callKeys, call)
  checkSignal(options.signal)
  return options.signal
}

/** The arguments of `transaction` after the lease. Throws `INVALID_ARGUMENT`. */
export function transactionArguments<Transaction, Result>(
  args: WorkArguments<FenceCallOptions, Transaction, Result>,
): { readonly signal: AbortSignal | undefined; readonly work: Work<Transaction, Result> } {
  const { options, work } = workOf('fence.transaction(lease', args)
  return { signal: signalOf(options, 'transaction'), work }
}

/** What a holder presents. Throws `INVALID_ARGUMENT` if `holder` is not one, and what `assertNotEnded` throws. */
export function presentedBy(holder: Holder, { resource, epoch = 0 }: FenceOptions): Presented {
  if (typeof holder !== 'object' || holder === null)
    throw invalid(`a fence needs a lease or its { name, token }, not ${show(holder)}`)
  if ('then' in holder) throw invalid('a fence needs a lease, not a promise: await it')
  if ('leases' in holder) throw invalid('this fence takes one lease, not a set: pass one of set.leases')
  const mark = { epoch, ...shownBy(holder) }
  checkMark(mark)
  const guarded = resource ?? holder.name
  checkResource(guarded)
  assertNotEnded(holder)
  return { resource: guarded, mark, name: holder.name }
}

function shownBy({ token, limit, slots }: Holder): Omit<Shown, 'epoch'> {
  const isShared = limit !== undefined || slots !== undefined
  if (typeof token !== 'string') return isShared ? { token, limit, slots } : { token }
  const shown = isShared ? undefined : parseToken(token)
  if (!shown) throw invalid(`a token in text is one number, or that of a permit such as "33/5:0+2", not ${show(token)}`)
  return shown
}

/** The mark of a lease. Throws `INVALID_ARGUMENT` for a permit: one mark cannot compare the tokens of several slots. */
export function markOfLease(holder: Holder, options: FenceOptions, what: string): Mark {
  const { mark } = presentedBy(holder, options)
  if (isAlone(mark)) return mark
  throw invalid(`${what} has one mark, and tokens of different slots cannot be compared: use a lease, not a permit`)
}

/**
 * What a holder, or each of several, presents. They are sorted by the bytes of their resources: two transactions that
 * mark in different orders would each wait for the other. Throws as `presentedBy`.
 */
export function presentedByAll(holder: Holder | Holders, options: FenceOptions): readonly Presented[] {
  if (typeof holder !== 'object' || holder === null || !('leases' in holder)) return [presentedBy(holder, options)]
  const { leases } = holder
  if (!Array.isArray(leases) || leases.length === 0) throw invalid('a fence needs a set of at least one lease')
  if (options.resource !== undefined && leases.length > 1)
    throw invalid(
      `the fence of the resource ${show(options.resource)} compares tokens of one name: ` +
        'for a set make a fence without resource, so that each name has a mark of its own',
    )
  assertNotEnded(holder)
  const presented = leases.map(lease => presentedBy(lease, options))
  if (new Set(presented.map(({ resource }) => resource)).size < leases.length)
    throw invalid('the set has a name twice: pass one token for each name')
  return presented.sort(byResource)
}

function byResource(a: Presented, b: Presented): number {
  return Buffer.compare(Buffer.from(a.resource), Buffer.from(b.resource))
}

/**
 * Throws `LEASE_LOST`, `MAX_HOLD` or `CLOSED` for a `Lease`, or a set with one, that has ended in this process. Of a
 * plain name and token this process knows nothing, so the resource decides.
 */
export function assertNotEnded(holder: Holder | Holders): void {
  if ('assertHeld' in holder && typeof holder.assertHeld === 'function') holder.assertHeld()
  else if ('leases' in holder) for (const lease of holder.leases) assertNotEnded(lease)
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

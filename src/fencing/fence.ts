import { checkKeys, checkSignal, checkText, checkWhole, invalid, show } from '../contract/check.ts'
import type { Holder, Holders, Mark, Shown } from './mark.ts'
import { isAlone } from './rule.ts'
import { areSlots, parseToken } from './shown.ts'

/** The options of every fence. */
export interface FenceOptions {
  /** The resource that the fence guards. Each resource has its own high-water marks. @default the name of the lease */
  readonly resource?: string | undefined
  /**
   * The epoch, which is compared before the token. After a move to another store or a restored backup,
   * `holdfast fence advance` prints the next one.
   * @default 0
   */
  readonly epoch?: number | undefined
}

/** The options of one call of a fence. */
export interface FenceCallOptions {
  /** Ends the wait. Once the work of a transaction has started, the signal is only checked before the commit. */
  readonly signal?: AbortSignal | undefined
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

/** Throws `INVALID_ARGUMENT` unless the resource is 1 to 255 bytes of text. */
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

/** Returns the signal of a call. Throws `INVALID_ARGUMENT` for any other option. */
export function signalOf(options: FenceCallOptions | undefined = {}, call: string): AbortSignal | undefined {
  checkKeys(options, callKeys, call)
  checkSignal(options.signal)
  return options.signal
}

/** Returns what a holder presents. Throws `INVALID_ARGUMENT` for an invalid `holder`, and what `assertNotEnded` throws. */
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

/** Returns the mark of a lease. Throws `INVALID_ARGUMENT` for a permit: one mark cannot compare several slots. */
export function markOfLease(holder: Holder, options: FenceOptions, what: string): Mark {
  const { mark } = presentedBy(holder, options)
  if (isAlone(mark)) return mark
  throw invalid(`${what} has one mark, and tokens of different slots cannot be compared: use a lease, not a permit`)
}

/**
 * Returns what a holder, or each of several, presents. They are sorted by the bytes of their resources: two transactions
 * that mark in different orders would each wait for the other. Throws as `presentedBy`.
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
 * Throws `LEASE_LOST`, `MAX_HOLD` or `CLOSED` for a `Lease`, or a set with one, that has ended in this process. For a
 * plain name and token this process cannot know, so the resource decides.
 */
export function assertNotEnded(holder: Holder | Holders): void {
  if ('assertHeld' in holder && typeof holder.assertHeld === 'function') holder.assertHeld()
  else if ('leases' in holder) for (const lease of holder.leases) assertNotEnded(lease)
}

/**
 * Settles as `work` does, or rejects with the reason of the signal when it aborts, unless `isTooLate()` by then. Work that
 * has begun continues.
 */
export async function abortable<T>(
  work: () => Promise<T>,
  signal: AbortSignal | undefined,
  isTooLate: () => boolean = () => false,
): Promise<T> {
  if (!signal) return work()
  signal.throwIfAborted()
  const aborted = Promise.withResolvers<never>()
  const stop = (): void => {
    if (!isTooLate()) aborted.reject(signal.reason)
  }
  signal.addEventListener('abort', stop, { once: true })
  try {
    return await Promise.race([work(), aborted.promise])
  } finally {
    signal.removeEventListener('abort', stop)
  }
}

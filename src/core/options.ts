import {
  checkDuration,
  checkHeartbeat,
  checkKeys,
  checkSignal,
  checkText,
  checkTtl,
  checkWait,
  checkWhole,
  invalid,
  show,
} from '../contract/check.ts'
import type { SharedKind } from '../contract/lease-events.ts'
import { LARGEST_LIMIT, type Store } from '../contract/store.ts'

/** The options of a lease. */
export interface LeaseOptions {
  /**
   * Milliseconds that the lease lasts unless it is renewed. A dead holder blocks the name for about as long. A whole
   * number, at least the `minTtl` of the store.
   * @default 10,000
   */
  readonly ttl?: number | undefined
  /** Free text that everybody sees with the name. At most 255 bytes, no control or invisible characters. @default '' */
  readonly note?: string | undefined
  /** The name of the holder, for people to read. It decides nothing. @default host:pid:random */
  readonly owner?: string | undefined
  /**
   * Renews the lease at a third of the ttl until release. `false` gives a fixed term. `'thread'` renews in a worker
   * thread, even while the event loop is blocked, for up to `maxBlocked`. It needs locks that `connect()` made over a
   * file or a server, else `INVALID_ARGUMENT`. The first lease waits for the thread, whatever its `wait`. Rejects
   * `STORE_UNAVAILABLE` if it does not start within 10 s. @default true
   */
  readonly heartbeat?: boolean | 'thread' | undefined
  /**
   * With `heartbeat: 'thread'`: milliseconds without a turn of the event loop after which the thread stops renewing. So
   * a process that hangs for good loses the lease within this + ttl + a third of the ttl. A block of up to nine tenths of
   * it is certainly tolerated. `INVALID_ARGUMENT` in a call with another `heartbeat`. @default the ttl
   */
  readonly maxBlocked?: number | undefined
  /** Milliseconds after which the lease ends with `MAX_HOLD`, so that a job that hangs frees the name. @default none */
  readonly maxHold?: number | undefined
}

/** The options of a call that acquires without waiting. */
export interface TryOptions extends LeaseOptions {
  /** Aborts the call, and in `using` also the signal of the lease. Has no effect on a lease that was returned. */
  readonly signal?: AbortSignal | undefined
}

/** The options of a call that acquires and may wait. */
export interface AcquireOptions extends TryOptions {
  /** Milliseconds to wait for a name that is held. 0 asks once and does not queue. @default Infinity */
  readonly wait?: number | undefined
  /**
   * The most calls of these locks that wait for one name. A further call rejects `TOO_MANY_WAITERS` and does not wait. A
   * whole number from 1, or `Infinity`. @default no limit
   */
  readonly maxWaiters?: number | undefined
}

/** The options of `once`. */
export interface OnceOptions extends AcquireOptions {
  /**
   * Milliseconds for which a success counts, from the start of the run, by the clock of the store. Choose half the time
   * between two runs. From the `minTtl` of the store to its `maxUnattended`.
   */
  readonly within: number
  /**
   * Milliseconds to wait for a run elsewhere. After its success the result is `ran`; after its failure the work runs here.
   * @default 0, whatever the default of the locks
   */
  readonly wait?: number | undefined
}

/** The options of `close`. */
export interface CloseOptions {
  /** Milliseconds for which work may continue after its signal aborted. @default 5,000 */
  readonly grace?: number | undefined
  /**
   * Releases at once what `acquire` and `tryAcquire` have returned. The leases of work that runs are released when it has
   * returned. @default false
   */
  readonly release?: boolean | undefined
}

/** The options of `ping`. */
export interface PingOptions {
  /** Ends the call, which then rejects with its reason. */
  readonly signal?: AbortSignal | undefined
}

/** The options of `break`: which leases end, and who ends them. */
export interface BreakOptions {
  /** A person or a process, for the event `lease_broken` of this process. @default the owner of these locks */
  readonly by?: string | undefined
  /** Ends only the lease that has this slot. @default the leases of all holders */
  readonly slot?: number | undefined
  /** Ends only the lease with this token, such as one that was seen before. @default the leases of all holders */
  readonly token?: bigint | undefined
}

/** Defaults for all leases of one `Locks`. */
export type LocksDefaults = Omit<AcquireOptions, 'signal'>

/** The calls that acquire. */
export type Verb = 'acquire' | 'tryAcquire' | 'using' | 'tryUsing'

export function isTry(verb: Verb): boolean {
  return verb === 'tryAcquire' || verb === 'tryUsing'
}

export function runsWork(verb: Verb): boolean {
  return verb === 'using' || verb === 'tryUsing'
}

/** The options of one call, completed with all defaults. */
export interface AcquireTerms {
  readonly ttl: number
  readonly wait: number
  readonly maxWaiters: number
  readonly note: string
  readonly owner: string
  readonly heartbeat: boolean | 'thread'
  readonly maxBlocked?: number | undefined
  readonly maxHold?: number | undefined
  /** May the process end while the lease is held? Work that runs keeps it alive; a lease that was handed out does not. */
  readonly background: boolean
  readonly signal: AbortSignal | undefined
  /** What is acquired, if it is not a lease on one name. */
  readonly kind?: SharedKind
  /** The limit of a permit or a reader. */
  readonly limit?: number | undefined
  readonly units?: number | undefined
  /** Called with each answer that the name is busy. */
  readonly onBusy?: (() => void) | undefined
}

/** How a lease is held. */
export type HoldTerms = Pick<AcquireTerms, 'heartbeat' | 'maxBlocked' | 'maxHold' | 'background'>

export const leaseKeys: readonly string[] = ['ttl', 'note', 'owner', 'heartbeat', 'maxBlocked', 'maxHold']
export const defaultKeys: ReadonlySet<string> = new Set([...leaseKeys, 'wait', 'maxWaiters'])
const tryKeys: ReadonlySet<string> = new Set([...leaseKeys, 'signal'])
const acquireKeys: ReadonlySet<string> = new Set([...leaseKeys, 'wait', 'maxWaiters', 'signal'])
export const onceKeys: ReadonlySet<string> = new Set([...acquireKeys, 'within'])
/** The names of the options of a call. */
export function keysOf(verb: Verb): ReadonlySet<string> {
  return isTry(verb) ? tryKeys : acquireKeys
}

export const pingKeys: ReadonlySet<string> = new Set(['signal'])
export const listKeys: ReadonlySet<string> = new Set(['between', 'sent'])
const breakKeys: ReadonlySet<string> = new Set(['by', 'slot', 'token'])
export const closeKeys: ReadonlySet<string> = new Set(['grace', 'release'])

/**
 * Throws `INVALID_ARGUMENT` for values that this store cannot accept. `hasThread`: is `heartbeat: 'thread'` possible?
 * `ttlName`: the name of the ttl in a message.
 */
export function checkOptions(options: AcquireOptions, store: Store, hasThread: boolean, ttlName?: string): void {
  const { ttl, wait, maxWaiters, note, owner, heartbeat, maxBlocked, maxHold, signal } = options
  if (ttl !== undefined) checkTtl(ttl, store, ttlName)
  if (wait !== undefined) checkWait(wait, 'wait')
  // `Infinity` lifts a default.
  if (maxWaiters !== undefined && maxWaiters !== Number.POSITIVE_INFINITY) checkWhole(maxWaiters, 'maxWaiters', 1)
  if (note !== undefined) checkText(note, 'note')
  if (owner !== undefined) checkText(owner, 'owner')
  if (maxBlocked !== undefined) checkDuration(maxBlocked, 'maxBlocked')
  if (maxHold !== undefined) checkDuration(maxHold, 'maxHold')
  if (heartbeat !== undefined) checkHeartbeat(heartbeat, hasThread)
  checkSignal(signal)
}

/** Throws `INVALID_ARGUMENT` for invalid options of `break`. */
export function checkBreakOptions(options: BreakOptions): void {
  checkKeys(options, breakKeys, 'break')
  const { by, slot, token } = options
  if (by !== undefined) checkText(by, 'by')
  if (token !== undefined && typeof token !== 'bigint')
    throw invalid(`token must be a bigint, such as lease.token, not ${show(token)}`)
  if (slot !== undefined) checkWhole(slot, 'slot', 0, LARGEST_LIMIT - 1)
}

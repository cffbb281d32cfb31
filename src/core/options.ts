import { checkDuration, checkHeartbeat, checkSignal, checkText, checkTtl, checkWait } from '../contract/check.ts'
import type { Store } from '../contract/store.ts'

export interface LeaseOptions {
  /**
   * Milliseconds that the lease lasts unless it is renewed; a whole number, at least the `shortestTtl` of the store.
   * @default 10,000
   */
  readonly ttl?: number | undefined
  /** Free text that everybody sees with the name; at most 255 bytes, no control or invisible characters. @default '' */
  readonly note?: string | undefined
  /** Who holds, for people to read; it decides nothing. @default host:pid:random */
  readonly owner?: string | undefined
  /**
   * Renew at a third of the ttl until release? `false` gives a fixed term. `'thread'` renews in a worker thread, also
   * while the event loop is blocked, for up to `livenessLimit`: only for locks made by `connect()` over a file or a server,
   * else `INVALID_ARGUMENT`. Rejects `STORE_UNAVAILABLE` if the thread does not start. @default true
   */
  readonly heartbeat?: boolean | 'thread' | undefined
  /**
   * With `heartbeat: 'thread'`: milliseconds without a turn of the event loop after which the thread renews no more, so
   * that a process that is stuck for good loses the lease within this + ttl. Up to nine tenths of it are sure to be
   * ridden out. @default the ttl
   */
  readonly livenessLimit?: number | undefined
  /** Milliseconds after which the lease is renewed no more (`MAX_HOLD`), so that a hung job does not hold for ever. */
  readonly maxHold?: number | undefined
}

export interface TryOptions extends LeaseOptions {
  /** Aborts the call, and in `using` also the signal of the lease; never a lease already given. */
  readonly signal?: AbortSignal | undefined
}

export interface AcquireOptions extends TryOptions {
  /** Milliseconds to wait for a name that is held; 0 asks once and joins no line. @default Infinity */
  readonly wait?: number | undefined
}

export interface CloseOptions {
  /** Milliseconds for which the holders' work may go on after its signals aborted. @default 5,000 */
  readonly grace?: number | undefined
}

/** What every lease of one `Locks` starts from. */
export type LocksDefaults = Omit<AcquireOptions, 'signal'>

/** The options of every lease. */
export const leaseKeys: readonly string[] = ['ttl', 'note', 'owner', 'heartbeat', 'livenessLimit', 'maxHold']
/** The options that each call knows. */
export const defaultKeys: ReadonlySet<string> = new Set([...leaseKeys, 'wait'])
export const tryKeys: ReadonlySet<string> = new Set([...leaseKeys, 'signal'])
export const acquireKeys: ReadonlySet<string> = new Set([...leaseKeys, 'wait', 'signal'])
export const closeKeys: ReadonlySet<string> = new Set(['grace'])

/**
 * Throws `INVALID_ARGUMENT` for values that cannot be right over this store. `hasThread`: may the heartbeat be in a
 * thread? `ttlName`: the name of the ttl in a message.
 */
export function checkOptions(options: AcquireOptions, store: Store, hasThread: boolean, ttlName?: string): void {
  const { ttl, wait, note, owner, heartbeat, livenessLimit, maxHold, signal } = options
  if (ttl !== undefined) checkTtl(ttl, store, ttlName)
  if (wait !== undefined) checkWait(wait, 'wait')
  if (note !== undefined) checkText(note, 'note')
  if (owner !== undefined) checkText(owner, 'owner')
  if (livenessLimit !== undefined) checkDuration(livenessLimit, 'livenessLimit')
  if (maxHold !== undefined) checkDuration(maxHold, 'maxHold')
  if (heartbeat !== undefined) checkHeartbeat(heartbeat, hasThread)
  checkSignal(signal)
}

/**
 * How a lease ended.
 * - `released`: the store confirmed the release.
 * - `lost`: the lease was over before it was released; `lease.signal.reason` says why.
 * - `unknown`: the store did not confirm the release in time. The name is free after the ttl at the latest.
 */
export type LeaseEnd = 'released' | 'lost' | 'unknown'

/**
 * A lease that this process holds. A copy such as `{ ...lease }` has `name`, `token`, `owner` and `ttl`, and no methods.
 * (It is a class and not an interface, so that TypeScript knows that.)
 */
export declare class Lease implements AsyncDisposable {
  readonly name: string
  /**
   * The fencing token. It is higher than that of every earlier holder of this name, and never changes. Pass it to the
   * resource, which refuses a token lower than the highest it has seen.
   */
  readonly token: bigint
  readonly owner: string
  /** Milliseconds that each renewal requests. */
  readonly ttl: number
  /**
   * Aborts when the lease is lost, before another holder can acquire the name: by a timer if the event loop runs, else
   * at the first synchronous check. The reason is a `LeaseError`: `LEASE_LOST`, `MAX_HOLD`, or `CLOSED` at `close()`.
   * In `using` it also aborts with the caller's own signal. It does not abort at `release()`.
   */
  get signal(): AbortSignal
  /** Milliseconds until the lease is over unless it is renewed; 0 when it is lost or released. */
  get remaining(): number
  /** Resolves when the lease is over; never rejects. Does not keep the process alive. */
  get ended(): Promise<LeaseEnd>
  /**
   * Returns if the lease is held now. It is right even just after the event loop was blocked or the process was paused.
   * Throws `LEASE_LOST`, `MAX_HOLD`, or `CLOSED` after release.
   *
   * The process may be paused right after this check. If a write must never happen twice, the resource must check the
   * token.
   */
  assertHeld(): void
  /**
   * Renews now and resolves to the milliseconds that remain. Later renewals request the same `ttl`. A shorter ttl counts
   * from the call on, even if no answer comes. A longer ttl counts when it is granted. After a failed renewal it is
   * requested only when no stale request can set the shorter ttl again: up to a third of the ttl, at most 5 s, later.
   * Rejects `LEASE_LOST`, `STORE_UNAVAILABLE` or `OUTCOME_UNKNOWN`. After the last two the lease is held until its
   * deadline.
   */
  extend(ttl?: number): Promise<number>
  /**
   * Changes the note, which `inspect` and `list` show: the progress of the work, or the address of a leader. At most 255
   * bytes. Notes are written one at a time, in the order of the calls. Rejects `INVALID_ARGUMENT`, `LEASE_LOST`,
   * `CLOSED`, `STORE_UNAVAILABLE` and `OUTCOME_UNKNOWN`. After the last two the note may or may not be written, and the
   * lease is still held. The next note is written when no stale request can overwrite it.
   */
  annotate(note: string): Promise<void>
  /**
   * Stops the renewals. The lease stays held until its deadline; `extend()` still renews it once. A renewal in progress
   * may still succeed.
   */
  stopRenewing(): void
  /**
   * Releases the name. Never rejects. Resolves within 2 s. After a loss it resolves at once, or within 1 s if the store
   * may still hold the name: after `maxHold`, or if the deadline passed without a failed renewal. If the store has not
   * answered by then, the release continues in the background. If the release finds that the lease is gone, `signal`
   * aborts first. Further calls return the same promise.
   */
  release(): Promise<LeaseEnd>
  /** Releases. Never rejects: call `assertHeld()` at the end of the block to detect a loss. */
  [Symbol.asyncDispose](): Promise<void>
  /** Name, token (a decimal string), owner, ttl and remaining. */
  toJSON(): Record<string, unknown>
}

/**
 * How a lease ended.
 * - `released`: the store confirmed that the name is free.
 * - `lost`: the lease was over before it was released; `lease.signal.reason` says why.
 * - `unknown`: the store did not confirm the release in time; the ttl frees the name at the latest.
 */
export type LeaseEnd = 'released' | 'lost' | 'unknown'

/**
 * A name that is held, for as long as it is renewed. A copy such as `{ ...lease }` has `name`, `token`, `owner` and
 * `ttl`, and nothing that acts on the lease. (A class and not an interface, so that TypeScript knows that.)
 */
export declare class Lease implements AsyncDisposable {
  readonly name: string
  /**
   * The fencing token: higher than that of every earlier holder of this name, the same for as long as this lease lives.
   * Hand it to the resource, which refuses a token lower than the highest it has seen.
   */
  readonly token: bigint
  readonly owner: string
  /** Milliseconds that each renewal asks for. */
  readonly ttl: number
  /**
   * Aborts when the lease is lost, before anybody else can own the name: by a timer if the event loop runs, else by
   * the first synchronous check. The reason is a `LeaseError`: `LEASE_LOST`, `MAX_HOLD`, or `CLOSED` at `close()`.
   * In `using` it also aborts with the caller's own signal. It does not abort at `release()`.
   */
  get signal(): AbortSignal
  /** Milliseconds until the lease is over unless it is renewed; 0 when it is lost or released. */
  get remaining(): number
  /** Resolves when the lease is over; never rejects. Does not keep the process alive. */
  get ended(): Promise<LeaseEnd>
  /**
   * Returns if the lease is held at this moment, right even just after the event loop was blocked or the process was
   * stopped. Throws `LEASE_LOST`, `MAX_HOLD`, or `CLOSED` after release.
   *
   * It speaks of this moment only: the process may be paused right after it. What must never be written twice needs
   * the token checked at the resource.
   */
  assertHeld(): void
  /**
   * Renews now and resolves to the milliseconds that remain. A `ttl` that is granted holds for later renewals too; a
   * shorter one counts from now on even if no answer comes. Rejects `LEASE_LOST`, `STORE_UNAVAILABLE` or
   * `OUTCOME_UNKNOWN` (then the lease is still held until its deadline).
   * A longer ttl is asked for when no late copy of a renewal that failed can set the shorter one again: up to a third of
   * the ttl, at most 5 s, later than that.
   */
  extend(ttl?: number): Promise<number>
  /**
   * Changes the note that all see who look at the name: how far the work is, or the address at which a leader is
   * reached. At most 255 bytes. Notes are written one after the other, in the order of the calls. Rejects
   * `INVALID_ARGUMENT`, `LEASE_LOST`, `CLOSED`, and `STORE_UNAVAILABLE` or `OUTCOME_UNKNOWN` when it may or may not
   * have been written; the lease is held nonetheless, and the next note is written when no copy of that can arrive.
   */
  annotate(note: string): Promise<void>
  /**
   * Stops the renewals. The lease stays held until its deadline; `extend()` still renews it once. A renewal in progress
   * may still succeed.
   */
  stopRenewing(): void
  /**
   * Releases the name. Never rejects. Resolves within 2 s. After a loss it resolves at once, or within 1 s if the store
   * may still hold the name: after `maxHold`, or if the deadline passed without a failed renewal. If the store did not
   * answer by then, the release continues in the background. If the release finds the lease gone, `signal` aborts first.
   * Further calls return the same promise.
   */
  release(): Promise<LeaseEnd>
  /** Releases. Never rejects: call `assertHeld()` at the end of the block to learn of a loss. */
  [Symbol.asyncDispose](): Promise<void>
  /** Name, token (a decimal string), owner, ttl and remaining. */
  toJSON(): Record<string, unknown>
}

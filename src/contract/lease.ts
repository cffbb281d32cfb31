/**
 * How a lease ended.
 * - `released`: the store confirmed the release.
 * - `lost`: the lease was over before it was released; `lease.signal.reason` says why.
 * - `unknown`: the store did not confirm the release in time. The name is free after the ttl at the latest.
 */
export type LeaseEnd = 'released' | 'lost' | 'unknown'

/**
 * A lease that this process holds on a name, renewed at a third of its ttl until `release()`. Pass `signal` to what you
 * await, and `token` to the resource that you write to. A copy such as `{ ...lease }` has `name`, `token`, `owner` and
 * `ttl`, and no methods. (It is a class and not an interface, so that TypeScript knows that.) The methods can be taken
 * apart: `const { release } = lease`. `remaining` and `signal` are read when they are taken.
 */
export declare class Lease implements AsyncDisposable {
  /** The name that is held. */
  readonly name: string
  /**
   * The fencing token. It is higher than that of every earlier holder of this name (`store.guarantees.token` has the
   * conditions), and never changes. Pass it to the resource, which refuses a token lower than the highest it has seen.
   */
  readonly token: bigint
  /** The name of the holder, for people to read. */
  readonly owner: string
  /** Milliseconds that each renewal requests. */
  readonly ttl: number
  /**
   * Aborts when the lease is lost: at its deadline, which comes before another holder can acquire the name, or when the
   * store answers that the lease is gone. A blocked event loop delays the abort; reading `lease.signal` and calling
   * `assertHeld()` check the clock and abort it at once.
   *
   * The reason is a `LeaseError`: `LEASE_LOST`, `MAX_HOLD`, or `CLOSED` at `close()`. In `using` it also aborts with the
   * caller's own signal. It does not abort at `release()`. Listeners run in the async context in which it was first read.
   */
  get signal(): AbortSignal
  /** A snapshot: milliseconds until the lease is over unless it is renewed; 0 when it is lost or released. */
  get remaining(): number
  /** Resolves to how the lease ended, when it is over. Never rejects. Does not keep the process alive. */
  get ended(): Promise<LeaseEnd>
  /**
   * Throws if the lease is over: `LEASE_LOST`, `MAX_HOLD`, or `CLOSED` after release. It reads the clock, so it is right
   * even just after the event loop was blocked or the process was paused.
   *
   * It does not throw because `signal` aborted at `close()` or with the signal of the caller. These ask the work to end,
   * and the lease is still held, so the work may save what it has until its deadline.
   *
   * The process may be paused right after this check. If a late write does harm, the resource must check the `token`.
   */
  assertHeld(): void
  /**
   * Renews now and resolves to the milliseconds that remain. `ttl` (milliseconds, default: unchanged) also counts for
   * later renewals. A shorter ttl counts from its request on, even if no answer comes. A longer ttl counts once it is
   * granted. A call that changes the ttl first waits for a renewal in flight. If that fails, the call rejects with its
   * error, and the ttl is unchanged. After a failed renewal a longer ttl waits up to a third of the ttl, at most 5 s.
   *
   * Rejects `LEASE_LOST`, `MAX_HOLD`, `CLOSED`, `INVALID_ARGUMENT`, `STORE_UNAVAILABLE` or `OUTCOME_UNKNOWN`. After the
   * last two the lease is still held until its deadline.
   */
  extend(ttl?: number): Promise<number>
  /**
   * Changes the note that `inspect` and `list` show, such as the progress of the work or the address of a leader. At most
   * 255 bytes. Notes are written one at a time, in the order of the calls.
   *
   * Rejects `INVALID_ARGUMENT`, `LEASE_LOST`, `MAX_HOLD`, `CLOSED`, `STORE_UNAVAILABLE` or `OUTCOME_UNKNOWN`. After the
   * last two the note may or may not be written, and the lease is still held.
   */
  annotate(note: string): Promise<void>
  /**
   * Stops the renewals. The lease stays held until its deadline; `extend()` still renews it once. A renewal in progress
   * may still succeed.
   */
  stopRenewing(): void
  /**
   * Releases the name, so that the next waiter gets it. Never rejects. Resolves within 2 s; if the store has not answered
   * by then, to `unknown`, and the release continues in the background. After a loss it resolves to `lost` within 1 s.
   * If the release finds that the lease is gone, `signal` aborts first. Further calls return the same promise.
   */
  release(): Promise<LeaseEnd>
  /** Releases. Never rejects: call `assertHeld()` at the end of the block to detect a loss. */
  [Symbol.asyncDispose](): Promise<void>
  /** Returns name, token (a decimal string), owner, ttl and remaining. */
  toJSON(): Record<string, unknown>
}

/**
 * A lease on one or more slots of a name that several can hold: a semaphore, or readers and writers. It is renewed, lost
 * and released as one lease.
 */
export declare class Permit extends Lease {
  /** The lowest slot that is held, from 0. */
  readonly slot: number
  /** All slots that are held, in rising order. Nobody else has one of them at the same time. */
  readonly slots: readonly number[]
  /** The limit that it was acquired with; 2^31 - 1 for a reader. Pass it to the resource with the token and the slots. */
  readonly limit: number
}

import type { Lease } from '../contract/lease.ts'
import type { NameState } from '../contract/record.ts'
import type { LeaseRecord, Store } from '../contract/store.ts'
import type { Advice } from './advice/advice.ts'
import type { Once } from './once.ts'
import type { AcquireOptions, BreakOptions, CloseOptions, OnceOptions, PingOptions, TryOptions } from './options.ts'
import type { Tried, Work } from './work.ts'

/** Leases on the names of one store. */
export interface Leasing extends AsyncDisposable {
  /** The store of these locks. `store.guarantees` says what it promises. */
  readonly store: Store
  /**
   * Acquires `name`, and waits while another holds it. The lease is renewed until `release()`. To release it in any case,
   * prefer `using(name, work)`, or `await using lease = …`.
   *
   * Rejects:
   * - `BUSY`: the name was held for all of `wait` (default: no limit).
   * - `TOO_MANY_WAITERS`: `maxWaiters` calls already wait for it.
   * - `STORE_UNAVAILABLE`: the store did not answer for one ttl, or for `wait` if that is shorter.
   * - The reason of `signal`, when it aborts.
   * - `CLOSED`, `INVALID_ARGUMENT`.
   *
   * A call that rejects leaves no claim behind.
   */
  acquire(name: string, options?: AcquireOptions): Promise<Lease>
  /**
   * Acquires `name` if it is free and nobody waits for it, else resolves to `undefined`. Does not wait. Rejects
   * `STORE_UNAVAILABLE` if the store does not answer within 2 s, the reason of `signal`, `CLOSED` and `INVALID_ARGUMENT`.
   */
  tryAcquire(name: string, options?: TryOptions): Promise<Lease | undefined>
  /**
   * Acquires `name`, waits while another holds it, runs `work`, and releases when the work has returned. Resolves to the
   * result of the work. Pass `lease.signal` to what the work awaits: it aborts when the lease is lost.
   *
   *     await locks.using('reports', { wait: 5_000 }, async lease => sendReports(lease.signal))
   *
   * Rejects as `acquire`, and with:
   * - The error of the work, or the reason of `lease.signal` if the work failed because of it.
   * - `LEASE_LOST` or `MAX_HOLD`, if the work returned after the lease was lost. `error.result` is its result.
   *
   * If the release fails, it emits `release_failed` and resolves to the result.
   */
  using<Result>(name: string, work: Work<Lease, Result>): Promise<Result>
  using<Result>(name: string, options: AcquireOptions | undefined, work: Work<Lease, Result>): Promise<Result>
  /**
   * As `using`, if `name` is free and nobody waits for it. Otherwise the work does not run. Rejects as `using`, and
   * `STORE_UNAVAILABLE` if the store does not answer within 2 s.
   *
   *     const outcome = await locks.tryUsing('reports', async lease => sendReports(lease.signal))
   *     if (!outcome.ran) throw new Error(`held by ${outcome.holder?.owner}`)
   */
  tryUsing<Result>(name: string, work: Work<Lease, Result>): Promise<Tried<Result>>
  tryUsing<Result>(name: string, options: TryOptions | undefined, work: Work<Lease, Result>): Promise<Tried<Result>>
  /**
   * For cron: runs `work` under a lease on `name`, unless it runs elsewhere or has succeeded within the last `within` ms.
   * The success is marked at the store before the release. Resolves to the result, or to why the work did not run: `held`
   * or `ran`. With `wait` it waits for a run elsewhere: it resolves to `ran` after a success, and runs the work after a
   * failure or a death.
   *
   *     await locks.once('invoices', { within: 12 * 3_600_000 }, async lease => sendInvoices(lease.signal))
   *
   * Rejects as `using`, and then marks nothing; but if the store only fails to mark a success, it resolves, with the
   * warning `HOLDFAST_NOT_MARKED`. Rejects `INVALID_ARGUMENT` if the store cannot remember a run for `within`. If it does
   * not answer, it rejects `STORE_UNAVAILABLE` within 4 s, or as `acquire` if `wait` is longer.
   *
   * Not exactly once: after a death between the success and its mark, or after a loss of data, the work runs again.
   */
  once<Result>(name: string, options: OnceOptions, work: Work<Lease, Result>): Promise<Once<Result>>
  /**
   * The holders of `name`, and its waiters if the store keeps a queue. Rejects `STORE_UNAVAILABLE` or `OUTCOME_UNKNOWN`
   * within 2 s, `CLOSED` and `INVALID_ARGUMENT`.
   */
  inspect(name: string): Promise<NameState>
  /**
   * All leases on names that begin with `prefix`, each followed by its waiters in order. Rejects as `inspect`, where 2 s
   * are for each request to the store. Redis searches all its keys, a thousand in each request.
   * @default '', which is all names
   */
  list(prefix?: string): AsyncIterable<LeaseRecord>
  /**
   * Takes the name from its holder, or a shared name from all of its holders. Resolves to a token that is higher than
   * theirs, or to `undefined` if nobody held the name. With `slot` only the lease that has this slot ends, and with `token`
   * only the one that has this token: if it ended before, whoever holds now keeps the name, and this resolves to
   * `undefined`. The old holder learns of it at its next renewal. Until then only a resource that has seen a higher token
   * refuses its writes. Rejects as `inspect`.
   */
  break(name: string, options?: BreakOptions): Promise<bigint | undefined>
  /**
   * Sends the store one request, for a readiness probe. Resolves if it answers within 2 s. It reads the name
   * `holdfast:ping`, and holds nothing. With Redlock a majority must answer. Rejects:
   * - `STORE_UNAVAILABLE`: no answer within 2 s, or the store cannot serve.
   * - `ACCESS_DENIED`, `NOT_MIGRATED`, `FORMAT_MISMATCH`: the store refuses these locks until somebody corrects that.
   * - The reason of `signal`, `CLOSED` and `INVALID_ARGUMENT`.
   */
  ping(options?: PingOptions): Promise<void>
  /**
   * What the renewals of these locks, and of those derived by `with`, have shown so far, in this process and under its
   * load: their latency, the delay of the event loop, and the least ttl that tolerates both. Sends no request. With
   * `heartbeat: 'thread'` it is the event loop of that thread. The event `ttl_too_short` reports a ttl that is less than ten times the p99.
   */
  advice(): Advice
  /**
   * Ends these locks, also if the store does not answer. Resolves within `grace` (default: 5 s) and 1 s; a heartbeat thread
   * that does not end adds up to 5 s, and so does a store that does not close.
   * - Calls that wait, and later calls, reject `CLOSED`. The signals of leases abort with `CLOSED`.
   * - Work may go on for `grace`. Then leases that are still held are no longer renewed, and end by their ttl.
   * - It also waits for leases that `acquire` and `tryAcquire` returned, and names them after a second, or at the end of a
   *   shorter `grace` (the warning `HOLDFAST_NOT_RELEASED`; not with `grace: 0`). With `release: true` it releases them at
   *   once.
   * - Releases in progress get up to 1 s.
   * - The store is closed too, with what it opened itself, but no client of yours. Of locks derived by `with`, the last to
   *   close closes it.
   */
  close(options?: CloseOptions): Promise<void>
}

import type { Lease } from '../contract/lease.ts'
import type { NameState } from '../contract/record.ts'
import type { LeaseRecord, Store } from '../contract/store.ts'
import type { Advice } from './advice/advice.ts'
import type { AcquireOptions, CloseOptions, TryOptions } from './options.ts'

/** Leases on the names of one store. */
export interface Leasing extends AsyncDisposable {
  readonly store: Store
  /**
   * Acquires `name`, and waits while it is held. Rejects `ACQUIRE_TIMEOUT` after `wait`, `STORE_UNAVAILABLE` if the
   * store did not answer for one ttl (or for the wait, if that is shorter), the reason of `signal` when it aborts,
   * `CLOSED` and `INVALID_ARGUMENT`. A call that rejects leaves no claim behind.
   */
  acquire(name: string, options?: AcquireOptions): Promise<Lease>
  /** Acquires `name` if it is free, else resolves to `undefined`. Never overtakes waiters. Rejects as `acquire`. */
  tryAcquire(name: string, options?: TryOptions): Promise<Lease | undefined>
  /**
   * Acquires `name`, runs `work`, then releases. Resolves to the result of the work. Rejects with the error of the work,
   * or with the reason of `lease.signal` if the work failed because of it. If the work returned after the lease was
   * lost, it rejects `LEASE_LOST` or `MAX_HOLD` with the `result`. If the release fails, it emits `release_failed` and
   * resolves to the result.
   */
  using<Result>(name: string, work: (lease: Lease) => PromiseLike<Result>, options?: AcquireOptions): Promise<Result>
  /** The holder of `name`, and its waiters if the store keeps a queue. */
  inspect(name: string): Promise<NameState>
  /** All leases on names that begin with `prefix`, each followed by its waiters in order. @default all */
  list(prefix?: string): AsyncIterable<LeaseRecord>
  /**
   * Takes the name from its holder. Resolves to a token that is higher than the holder's, or to `undefined` if nobody
   * held the name. The old holder learns of it at its next renewal. Until then only a resource that has seen a higher
   * token refuses its writes. This process emits `lease_broken` with `by`. @default the owner of these locks
   */
  break(name: string, by?: string): Promise<bigint | undefined>
  /**
   * What the renewals of these locks have shown so far, in this process and under its load: their latency, the delay of
   * the event loop, and the least ttl that tolerates both. Sends no request. With `heartbeat: 'thread'` it is the event
   * loop of that thread. The event `ttl_too_short` reports a ttl that is less than ten times the p99.
   */
  advice(): Advice
  /**
   * Rejects new claims and waits, and aborts the signals of leases, with `CLOSED`. Waits for work for `grace`. Then
   * leases that are still held are no longer renewed, and end with their ttl. Waits up to 1 s for releases in the
   * background. Then closes the store, which closes what it opened itself.
   */
  close(options?: CloseOptions): Promise<void>
}

import type { Acquirable } from './acquirable.ts'
import type { LeaseSet } from './lease-set.ts'
import type { Permit } from './permit.ts'

/** Semaphores, readers and writers, and sets of names. Each is made of leases. */
export interface Sharing {
  /**
   * A semaphore: up to `limit` permits of `name` at a time, across all processes. Sends no request by itself.
   *
   *     await locks.semaphore('geocoder', { limit: 3 }).using(async permit => geocode(permit.signal))
   *
   * - Slot 0 is the lease of `name`. So a limit of 1 equals a lease, and `acquire(name)` takes one permit.
   * - `permits` acquires several at once, all or none.
   * - Nothing stores the limit. Where calls state different limits, the largest counts.
   * - A permit is renewed, lost and fenced as a lease is. A process that died frees its permits after the ttl.
   *
   * Throws `INVALID_ARGUMENT`, also for a name of more than 240 bytes.
   */
  semaphore(name: string, options: SemaphoreOptions): Acquirable<Permit, PermitOptions>
  /**
   * Readers and writers of `name`: up to 16 readers at a time, or one writer. A writer runs alone. Readers that come after
   * a waiting writer wait. Sends no request by itself. Throws `INVALID_ARGUMENT`, also for a name of more than 240 bytes.
   *
   * - `acquire(name)` excludes writers, not readers.
   * - A reader cannot become a writer: it would wait for itself.
   */
  readWrite(name: string): ReadWrite
  /**
   * Several names at once: all of them are held, or none. At most 64 names, in any order; duplicates count once.
   *
   *     await locks.all(['account:1', 'account:2']).using(set => transfer(set.signal))
   *
   * - Sets do not deadlock, whatever the order of their names: every process acquires in the same order.
   * - When one lease is lost, `set.signal` aborts and the others are released at once; after `maxHold` they are not. If
   *   one is lost while the call still waits for another name, it begins anew, within `wait`.
   * - `ACQUIRE_TIMEOUT` has the name that was busy, as `error.lease`. `maxHold` counts from when all are held.
   * - While it waits, it holds the names that come before, and others wait for those.
   *
   * A call inside the work of another can deadlock: acquire in one call what you need together. Sends no request by
   * itself. Throws `INVALID_ARGUMENT`.
   */
  all(names: readonly string[]): Acquirable<LeaseSet>
}

/** How many permits there are. */
export interface SemaphoreOptions {
  /** Permits that may be held at a time, from 1 to 16. */
  readonly limit: number
}

/** How many permits a call acquires. */
export interface PermitOptions {
  /** Permits that this call acquires, all or none, up to `limit`. @default 1 */
  readonly permits?: number | undefined
}

/** The two ways to hold a name that many read and one writes. */
export interface ReadWrite {
  readonly name: string
  /** One of up to 16 readers. */
  readonly reader: Acquirable<Permit>
  /** The only holder of the name. */
  readonly writer: Acquirable<Permit>
}

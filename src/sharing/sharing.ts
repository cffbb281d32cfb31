import type { Lease, Permit } from '../contract/lease.ts'
import type { Acquirable } from '../core/acquirable.ts'
import type { LeaseSet } from './lease-set.ts'

/** Semaphores, readers and writers, and sets of names. A set is made of leases. */
export interface Sharing {
  /**
   * A semaphore: up to `limit` permits of `name` at a time, across all processes. Sends no request by itself.
   *
   *     await locks.semaphore('geocoder', { limit: 3 }).using(async permit => geocode(permit.signal))
   *
   * - Each permit has slots of its own, the lowest that were free. `permits` acquires several at once, all or none.
   * - A lease of `acquire(name)` excludes all permits. So does a permit of limit 1.
   * - If holders have different limits, the smallest one counts.
   * - Waiters are served in order. If the first needs more than is free, the others wait too.
   * - A permit is renewed, lost and fenced like a lease. The permits of a process that died are free after the ttl.
   * - Over a store that keeps no queue (Redlock, advisory locks) a permit is a lease on one of `limit` names, in no order.
   *   `permits` must be 1 there, and a permit has the name of its ticket.
   *
   * Throws `INVALID_ARGUMENT`.
   */
  semaphore(name: string, options: SemaphoreOptions): Acquirable<Permit, PermitOptions>
  /**
   * Readers and writers of `name`: any number of readers at a time, or one writer. Readers that come after a waiting writer
   * wait. Sends no request by itself. Throws `INVALID_ARGUMENT`, also over a store that keeps no queue.
   *
   * - A writer is what `acquire(name)` acquires.
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
   * - `BUSY` has the name that was busy, as `error.leaseName`. `maxHold` counts from when all are held.
   * - While the call waits for a name, it holds the names before it, and other processes wait for those.
   *
   * A call inside the work of another can deadlock: acquire in one call what you need together. Sends no request by
   * itself. Throws `INVALID_ARGUMENT`.
   */
  all(names: readonly string[]): Acquirable<LeaseSet>
}

/** The options of a semaphore. */
export interface SemaphoreOptions {
  /** The number of permits that may be held at a time, from 1 to 2^31 - 1. */
  readonly limit: number
}

/** The options of a call that acquires permits. */
export interface PermitOptions {
  /** The number of permits that this call acquires, all or none. At most `limit`, and at most 64. @default 1 */
  readonly permits?: number | undefined
}

/** The two ways to hold a name that many read and one writes. */
export interface ReadWrite {
  readonly name: string
  /** Acquires the name as a reader, of which there may be any number. */
  readonly reader: Acquirable<Permit>
  /** Acquires the name as a writer, its only holder. */
  readonly writer: Acquirable<Lease>
}

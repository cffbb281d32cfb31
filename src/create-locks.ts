import { checkNoMore } from './contract/check.ts'
import type { Lease, Permit } from './contract/lease.ts'
import type { Store } from './contract/store.ts'
import type { Acquirable } from './core/acquirable.ts'
import { coreEnvironment } from './core/core.ts'
import type { Leasing } from './core/leasing.ts'
import { CoreLocks } from './core/locks.ts'
import type { LocksDefaults } from './core/options.ts'
import { type Election, type ElectionOptions, StoreElection } from './leadership/election.ts'
import { type LeadOptions, lead } from './leadership/lead.ts'
import type { Leadership } from './leadership/leadership.ts'
import { AllNames } from './sharing/all.ts'
import type { LeaseSet } from './sharing/lease-set.ts'
import { readWrite, semaphore } from './sharing/permits.ts'
import type { PermitOptions, ReadWrite, SemaphoreOptions, Sharing } from './sharing/sharing.ts'

/**
 * Distributed locks over one store: leases on one name or on several, semaphores, readers and writers, and leadership of
 * names. `using` runs work under a lease. `tryAcquire` does not wait. `lead` and `election` keep one leader among many
 * processes.
 */
export interface Locks extends Leasing, Leadership, Sharing {
  /**
   * Locks over the same store with other defaults. What `defaults` does not set is as in these locks, even the owner.
   *
   *     const batch = locks.with({ ttl: 60_000, wait: 5_000 }) // milliseconds
   *
   * They share the connections, the renewals and `advice()`. Each has its own leases and `close()`, and the last to close
   * closes the store. So make them once, not for each call. Throws `INVALID_ARGUMENT` and `CLOSED`.
   */
  with(defaults: LocksDefaults): Locks
}

/**
 * Makes locks over a store, such as `sqlite(path)` or `redis(client)`. For a URL use `connect`. It sends no request: the
 * first call connects. `defaults` apply to every call that does not override them. Call `close()` at the end. The store
 * belongs to these locks and is closed with them: derive other locks over it by `locks.with(defaults)`.
 *
 *     const locks = createLocks(sqlite('leases.db'), { ttl: 10_000 }) // milliseconds
 *
 * Throws `INVALID_ARGUMENT`.
 */
export function createLocks(store: Store, defaults: LocksDefaults = {}): Locks {
  return new StoreLocks(store, defaults, coreEnvironment())
}

/** The implementation of `Locks`: the core, leadership and sharing. Simulations pass their own environment. */
export class StoreLocks extends CoreLocks implements Locks {
  with(defaults: LocksDefaults): Locks {
    return new StoreLocks(this.store, this.derived(defaults), this.family.environment, undefined, this.family)
  }

  lead(name: string, options: LeadOptions = {}): AsyncIterable<Lease> {
    this.closing.assertOpen()
    return lead(this.host, name, options)
  }

  election(name: string, options: ElectionOptions = {}): Election {
    return new StoreElection(this.host, name, options)
  }

  all(names: readonly string[], ...more: readonly unknown[]): Acquirable<LeaseSet> {
    checkNoMore(more, 'all(names)')
    return new AllNames(this.host, names)
  }

  semaphore(name: string, options: SemaphoreOptions, ...more: readonly unknown[]): Acquirable<Permit, PermitOptions> {
    checkNoMore(more, 'semaphore(name, { limit })')
    return semaphore(this.host, name, options)
  }

  readWrite(name: string, ...more: readonly unknown[]): ReadWrite {
    checkNoMore(more, 'readWrite(name)')
    return readWrite(this.host, name)
  }
}

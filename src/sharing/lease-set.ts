import type { Lease, LeaseEnd } from '../contract/lease.ts'
import { Handle } from '../core/handle.ts'
import type { Held } from '../core/held.ts'

/**
 * Leases on several names that this process holds together. They are renewed until `release()`. When one is lost, all are
 * over: `signal` aborts, and the others are released at once. After `maxHold` they stay held until `release()` or the end
 * of their ttl.
 */
export interface LeaseSet extends AsyncDisposable {
  /** The names, in the order of the call, without duplicates. */
  readonly names: readonly string[]
  /** The lease on each of `names`, each with its own fencing token. To release them, release the set. */
  readonly leases: readonly Lease[]
  /** Aborts as `Lease.signal` when any of them is lost, with that reason. `reason.leaseName` is the name that was lost. */
  readonly signal: AbortSignal
  /** Milliseconds until the first of them is over unless it is renewed; 0 when one is lost or released. */
  readonly remaining: number
  /**
   * Resolves when the set is over: to `lost` as soon as one is lost; when all are released to `unknown` if the store did
   * not confirm all releases, else to `released`. Never rejects. Does not keep the process alive.
   */
  readonly ended: Promise<LeaseEnd>
  /** Throws if any of them is over, as `Lease.assertHeld`. It reads the clock. */
  assertHeld(): void
  /**
   * Renews all of them now, and resolves to the milliseconds that remain of the first to end. `ttl` as in `Lease.extend`.
   * Rejects as `Lease.extend`, with the first error; then some may be renewed and others not.
   */
  extend(ttl?: number): Promise<number>
  /** Releases all of them at once, as `Lease.release`. Never rejects. Further calls return the same promise. */
  release(): Promise<LeaseEnd>
  /** Releases. Never rejects: call `assertHeld()` at the end of the block to detect a loss. */
  [Symbol.asyncDispose](): Promise<void>
  /** Returns names, leases and remaining. */
  toJSON(): Record<string, unknown>
}

/**
 * The set as its user sees it. Only this object refers to the handles of the leases, so the core notices when the program
 * has lost it.
 */
export class LeaseSetHandle extends Handle implements LeaseSet {
  readonly names: readonly string[]
  readonly leases: readonly Lease[]

  constructor(held: Held, leases: readonly Lease[]) {
    super(held)
    this.names = leases.map(({ name }) => name)
    this.leases = leases
  }

  toJSON(): Record<string, unknown> {
    const { names, leases, remaining } = this
    return { names, leases: leases.map(lease => lease.toJSON()), remaining: Math.round(remaining) }
  }
}

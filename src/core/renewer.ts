import type { Claim } from '../contract/store.ts'
import type { Acquired } from './acquisition.ts'
import type { RenewalStatistics } from './advice/renewal-statistics.ts'
import type { Core, HoldOptions } from './core.ts'
import { HeldLease } from './held-lease.ts'

export interface RenewerOptions extends HoldOptions {
  /** After this thread's event loop was blocked for this many ms, leases are no longer renewed. @default the ttl */
  readonly maxBlocked?: number | undefined
}

/** Renews leases of one `Locks` in a thread that continues while this one is blocked. */
export interface Renewer {
  /** Resolves when the thread can renew, and at once in later calls. Rejects with a `LeaseError`. */
  ready(): Promise<void>
  /** Makes the lease of a claim that was granted. */
  hold(core: Core, claim: Claim, acquired: Acquired, options: RenewerOptions): HeldLease
  /** Ends all renewals. */
  close(): Promise<void>
}

/** Makes the lease of a claim that was granted. Without a renewer this thread renews it. */
export function holdWith(
  renewer: Renewer | undefined,
  core: Core,
  claim: Claim,
  acquired: Acquired,
  options: RenewerOptions,
): HeldLease {
  return renewer?.hold(core, claim, acquired, options) ?? new HeldLease(core, claim, acquired, options)
}

/** Makes a renewer that adds its renewals to `statistics`. Called when the first lease needs it. */
export type OpenRenewer = (statistics: RenewalStatistics) => Promise<Renewer>

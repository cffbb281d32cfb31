import type { Claim } from '../contract/store.ts'
import type { Acquired } from './acquisition.ts'
import type { RenewalStatistics } from './advice/renewal-statistics.ts'
import type { Core } from './core.ts'
import type { HeldLease } from './held-lease.ts'
import type { HoldTerms } from './options.ts'

/** Renews leases of one `Locks` in a thread that continues while this one is blocked. */
export interface Renewer {
  /** Resolves when the thread can renew, and at once in later calls. Rejects with a `LeaseError`. */
  ready(): Promise<void>
  /** Makes the lease of a claim that was granted. */
  hold(core: Core, claim: Claim, acquired: Acquired, terms: HoldTerms): HeldLease
  /** Ends all renewals. */
  close(): Promise<void>
}

/** Makes a renewer that adds its renewals to `statistics`. Called when the first lease needs it. */
export type OpenRenewer = (statistics: RenewalStatistics) => Promise<Renewer>

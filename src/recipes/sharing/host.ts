import type { Environment } from '../../contract/environment.ts'
import type { Acquisition } from '../../core/acquisition.ts'
import type { Core } from '../../core/core.ts'
import type { HeldLease } from '../../core/held-lease.ts'
import type { AcquireOptions, AcquireTerms, Verb } from '../../core/options.ts'
import type { Works } from '../../core/work.ts'

/** What shared names and sets of names need from the locks. */
export interface SharingHost extends Environment {
  readonly core: Core
  /** The options of one call with all defaults. Throws `CLOSED`, and `INVALID_ARGUMENT` for an invalid value. */
  terms(verb: Verb, options: AcquireOptions): AcquireTerms
  /**
   * Acquires the lease on one name, under a claim of its own. Resolves to the acquisition, which has the error, if it was
   * not acquired within `wait`. Otherwise it rejects as `acquire`.
   */
  hold(name: string, terms: AcquireTerms): Promise<HeldLease | Acquisition>
  readonly works: Works
  /** Calls `action` with the reason when `signal` aborts, or at once if it has. Returns a function that cancels it. */
  onAbort(signal: AbortSignal | undefined, action: (reason: unknown) => void): () => void
}

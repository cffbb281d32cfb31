import type { Environment } from '../contract/environment.ts'
import type { NameState } from '../contract/record.ts'
import type { Acquisition } from './acquisition.ts'
import type { Core } from './core.ts'
import type { HeldLease } from './held-lease.ts'
import type { AcquireOptions, AcquireTerms, Verb } from './options.ts'
import type { Signals } from './signals.ts'
import type { Works } from './work.ts'

/** What calls, leadership and sharing need from the `Locks` that they belong to. */
export interface Host extends Environment {
  readonly core: Core
  readonly works: Works
  readonly signals: Signals
  /** Aborts with `CLOSED` when `close` begins. */
  readonly closing: AbortSignal
  /** Does what `Leasing.inspect` promises. */
  inspect(name: string): Promise<NameState>
  /** Completes the options of one call with the defaults. Throws `CLOSED`, and `INVALID_ARGUMENT` for an invalid value. */
  terms(verb: Verb, options: AcquireOptions): AcquireTerms
  /**
   * Acquires the lease on one name, under a claim of its own. Resolves to what `resultOf` makes of the lease, or of the
   * acquisition, which has the error, if it was not acquired within `wait`. Otherwise it rejects as `acquire`.
   */
  hold<Result>(name: string, terms: AcquireTerms, resultOf: (held: HeldLease | Acquisition) => Result): Promise<Result>
}

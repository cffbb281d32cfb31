import type { NameState } from '../contract/record.ts'
import type { Calls } from './calls.ts'
import type { Core } from './core.ts'
import type { AcquireOptions, AcquireTerms, Verb } from './options.ts'
import type { Signals } from './signals.ts'

/** What calls, leadership and sharing need from the `Locks` that they belong to. */
export interface Host extends Core {
  readonly calls: Calls
  readonly signals: Signals
  /** Aborts with `CLOSED` when `close` begins. */
  readonly closing: AbortSignal
  /** Does what `Leasing.inspect` promises. */
  inspect(name: string): Promise<NameState>
  /** Completes the options of one call with the defaults. Throws `CLOSED`, and `INVALID_ARGUMENT` for an invalid value. */
  terms(verb: Verb, options: AcquireOptions): AcquireTerms
}

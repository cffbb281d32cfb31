import type { Rules } from './rules.ts'
import type { Step } from './steps.ts'

/** The parameters of a search. */
export interface Plan {
  rules: Rules
  /** The first steps, to reach the states of interest sooner. */
  given?: readonly Step[]
  members: number
  /** The number of attempts of each claim. */
  attempts: readonly number[]
  /**
   * Numbers up to this one, or only their order: then the number of states is finite without a limit on numbers. Counters
   * rise by votes and by themselves. That models lower bounds by any clocks, and any number of failed attempts.
   */
  numbers: number | 'ordered'
  /** Rounds of renewals and restores of a granted lease. If leases end at any time, 1 stands for any number. */
  renewals: number
  /** The number of nodes that may lose their memory. */
  forgetful: number
  /**
   * When a lease may end. `anyMoment`: tokens must be correct without clocks. `unneeded`: only when its claim does not rely
   * on it, as with correct clocks. Then two claims must never hold at once.
   */
  leasesEnd: 'anyMoment' | 'unneeded'
}

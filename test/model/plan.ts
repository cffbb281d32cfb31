import type { Rules } from './rules.ts'
import type { Step } from './steps.ts'

/** What is searched. */
export interface Plan {
  rules: Rules
  /** What has happened before, to come sooner to what is looked for. */
  given?: readonly Step[]
  members: number
  /** How many attempts each claim may make. */
  attempts: readonly number[]
  /**
   * Numbers up to this one, or only their order: then there are finitely many states without any bound, since between
   * any two numbers there is always another. Counters rise by themselves as well as by votes, which stands for floors of
   * equal, different, capped and stepping clocks, and for any number of other attempts that come to nothing.
   */
  numbers: number | 'ordered'
  /** Rounds of renewals and set-agains of a granted lease; if leases end at any moment, 1 stands for ever so many. */
  renewals: number
  /** How many nodes may lose their memory. */
  forgetful: number
  /**
   * When a lease may end. `anyMoment`: tokens must be right without any clock. `unneeded`: only once its claim does not
   * rely on it, as with good clocks; then no two claims may hold at once either.
   */
  leasesEnd: 'anyMoment' | 'unneeded'
}

import type { Counts } from './coverage.ts'
import type { Event } from './history.ts'
import type { PromiseName, Violation } from './violation.ts'

export type Outcome = 'passed' | 'violated' | 'inconclusive'

/** The outcome of one promise. */
export interface Row {
  readonly promise: PromiseName
  readonly title: string
  readonly outcome: Outcome
  /** What the run showed, a sentence each. */
  readonly seen: readonly string[]
  /** What the run lacks, if it is inconclusive. */
  readonly missing: readonly string[]
  /** The first ones. */
  readonly violations: readonly Violation[]
  /** How many there were. */
  readonly broken: number
}

/** The result of a run. It can be written as JSON. Times are milliseconds. */
export interface Verdict {
  readonly outcome: Outcome
  readonly run: Omit<Event<'run'>, 'kind' | 'at'>
  readonly duration: number
  readonly rows: readonly Row[]
  readonly counts: Counts
  /** How often two clients acted as holders at once, and what the fence did about it. */
  readonly overlaps: { readonly total: number; readonly excused: number } & Readonly<
    Record<'refused' | 'idle' | 'harmful', number>
  >
  /** For takeovers from a live holder: how long before the next grant it was notified. Negative if after. */
  readonly margins:
    | {
        readonly count: number
        readonly least: number
        readonly median: number
        /** The least without clock jumps and lost data. `undefined`: there was one of them each time. */
        readonly undisturbed: number | undefined
        /** What caused the notices after the next grant: faults, or a violation. */
        readonly late: readonly string[]
      }
    | undefined
  /** How long it took to acquire names of dead holders. */
  readonly recoveries: { readonly count: number; readonly longest: number } | undefined
  /** The violation with the shortest explanation. */
  readonly example: Violation | undefined
  /** The events that led to it, a line each. Empty without a violation. */
  readonly explanation: readonly string[]
}

import type { Row, Verdict } from '../../lab/judge/verdict.ts'

/** The result of one run of an engine. It is stored as JSON. Times are milliseconds. */
export interface Proof {
  readonly engine: string
  readonly programme: string
  /** When it ended, in UTC, to the minute. */
  readonly date: string
  readonly commit: string
  /** What ran: see `sourcesOf`. */
  readonly sources: string
  readonly machine: string
  /** The command line that repeats the run. */
  readonly command: string
  readonly outcome: Verdict['outcome']
  readonly run: Omit<Verdict['run'], 'names' | 'faults' | 'shared'> & { readonly names: number }
  readonly duration: number
  readonly rows: readonly (Pick<Row, 'promise' | 'outcome' | 'broken' | 'missing'> & {
    /** The first violation. */
    readonly first?: string | undefined
  })[]
  readonly counts: Verdict['counts']
  readonly overlaps: Verdict['overlaps']
  readonly margins?: Verdict['margins']
  readonly recoveries?: Verdict['recoveries']
  /** The events that led to a violation. */
  readonly explanation: readonly string[]
}

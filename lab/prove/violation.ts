/** What a run is judged by. */
export type PromiseName = 'safety' | 'tokens' | 'told' | 'deadlock' | 'faults'

/** What must not have happened. */
export interface Violation {
  readonly promise: PromiseName
  /** When it happened, in milliseconds since the start of the run. */
  readonly at: number
  readonly name: string
  /** A sentence. */
  readonly what: string
  /** The acquisitions that it is about. */
  readonly ops: readonly number[]
}

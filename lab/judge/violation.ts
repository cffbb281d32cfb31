/** The promises by which a run is judged. */
export type PromiseName = 'safety' | 'tokens' | 'answers' | 'notified' | 'waiting' | 'deadlock' | 'faults'

/** A broken promise. */
export interface Violation {
  readonly promise: PromiseName
  /** Milliseconds since the start of the run. */
  readonly at: number
  readonly name: string
  /** A sentence. */
  readonly what: string
  /** The acquisitions involved. */
  readonly ops: readonly number[]
  /** The ids of claims involved, of which the requests are shown. */
  readonly claims?: readonly string[]
}

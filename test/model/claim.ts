/** Phases of an attempt. */
export const IDLE = 0
export const VOTING = 1
export const COMMITTING = 2
export const GRANTED = 3
export const WITHDRAWN = 4

/** One attempt of a claim. Its messages can always be delivered: late, lost, duplicated and reordered. */
export interface Attempt {
  readonly claim: number
  /** Counts from 1 in its claim. */
  readonly number: number
  readonly isLast: boolean
  phase: number
  /** What COMMIT writes, and the token once granted; 0 is none. */
  token: number
  /** The highest token handed out when the attempt began. */
  low: number
}

export interface Claim {
  /** The request whose ttl it relies on, as in Member.end; 0 is none. */
  relies: number
  /** The number of started renewals. */
  round: number
}

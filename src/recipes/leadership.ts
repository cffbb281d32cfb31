import type { Lease } from '../contract/lease.ts'
import type { Election, ElectionOptions } from './election.ts'
import type { LeadOptions } from './lead.ts'

/** Leadership of a name: a candidate acquires it, holds it for as long as possible, and acquires it again. */
export interface Leadership {
  /**
   * Yields a lease for each term in which this process leads `name`. The loop ends without an error when `signal` aborts
   * or the locks are closed. The `signal` of the lease aborts when the term is lost. The name is released only after the
   * body returns, also after a loss. Then the name is acquired again, for the next term. `release()` in the body
   * resigns: it releases the name at once, and the next term begins after `pause`. A store that fails is retried, with
   * the event `leadership_delayed`.
   *
   * Throws `INVALID_ARGUMENT` and `CLOSED`. The loop rejects with an error that a retry cannot fix, such as
   * `DRIVER_MISSING`.
   */
  lead(name: string, options?: LeadOptions): AsyncIterable<Lease>
  /** A candidate for `name`, and a view of its leader. Sends no request. Throws `INVALID_ARGUMENT`. */
  election(name: string, options?: ElectionOptions): Election
}

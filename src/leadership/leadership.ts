import type { Lease } from '../contract/lease.ts'
import type { Election, ElectionOptions } from './election.ts'
import type { LeadOptions } from './lead.ts'

/** Leadership of a name: a candidate acquires it, holds it for as long as possible, and acquires it again. */
export interface Leadership {
  /**
   * Yields a lease for each term in which this process leads `name`.
   *
   *     for await (const term of locks.lead('scheduler', { signal })) await schedule(term.signal)
   *
   * - The `signal` of the lease aborts when the term is lost.
   * - When the body ends, the name is released. After a loss the next term begins at once, else after `pause`. `break` leaves
   *   the loop.
   * - `release()` in the body resigns: it releases the name at once, and the next term begins after `pause`.
   * - The loop ends without an error when `signal` aborts or the locks are closed.
   * - A store that fails is retried, with the event `leadership_delayed`.
   *
   * Throws `INVALID_ARGUMENT` and `CLOSED`. The loop rejects with an error that a retry cannot fix, such as
   * `DRIVER_MISSING`.
   */
  lead(name: string, options?: LeadOptions): AsyncIterable<Lease>
  /**
   * A candidate for `name`: `run(work)` runs the work while this process leads, and `leader()` shows who leads. Sends no
   * request by itself. Throws `INVALID_ARGUMENT`.
   */
  election(name: string, options?: ElectionOptions): Election
}

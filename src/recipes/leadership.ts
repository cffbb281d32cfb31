import type { Lease } from '../contract/lease.ts'
import type { Election, ElectionOptions } from './election.ts'
import type { LeadOptions } from './lead.ts'

/** To lead a name: to have it for as long as possible, again and again. */
export interface Leadership {
  /**
   * The terms for which this process has `name`, one turn each, until `signal` aborts or the locks are closed: then the
   * loop ends, without an error. Leaving the body resigns: the name is given back when the body has ended, not before,
   * also when the lease was lost meanwhile, which `signal` of the lease tells; the next turn begins when the name is had
   * again. `release()` in the body resigns too: it releases the name at once, and the next turn begins after `pause`.
   * While the store fails it is asked again and again (the event `leadership_delayed`).
   *
   * Throws `INVALID_ARGUMENT` and `CLOSED`; a turn rejects with what asking again cannot mend, such as `DRIVER_MISSING`.
   */
  lead(name: string, options?: LeadOptions): AsyncIterable<Lease>
  /** A candidate for `name`, and a view of who leads it. Does nothing yet. Throws `INVALID_ARGUMENT`. */
  election(name: string, options?: ElectionOptions): Election
}

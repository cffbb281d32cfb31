import type { LeaseError } from './errors.ts'
import type { Lease } from './lease.ts'
import type { LossReason } from './lease-events.ts'

/** What a handle stands for. */
export interface Held extends Pick<Lease, 'ttl'> {
  /** Why the lease was lost, also if its signal aborted earlier for another reason. */
  readonly loss?: LeaseError | undefined
  readonly lossReason?: LossReason | undefined
}

/** A handle. The name of the property is the same in every copy of this library, since copies share their events. */
export interface Identified {
  /** What the handle stands for. */
  readonly 'holdfast:held': Held
}

/**
 * Identifies the lease of an event without a reference to its handle. A program may drop the handle of a lease that is
 * still renewed; later events of that lease then have another handle.
 */
export function heldBy(lease: Lease & Partial<Identified>): Held {
  return lease['holdfast:held'] ?? lease
}

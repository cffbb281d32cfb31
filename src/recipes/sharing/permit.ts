import type { Lease } from '../../contract/lease.ts'
import { type Held, LeaseHandle } from '../../core/lease-handle.ts'

/** A slot that a permit holds. Tokens of different slots are not comparable. */
export interface HeldSlot {
  /** 0 is the lease of the name itself. */
  readonly slot: number
  /** The fencing token of this slot. It is higher than that of every earlier holder of the slot. */
  readonly token: bigint
}

/**
 * A lease on one or more slots of a name that several can hold: a semaphore, or readers and writers. If one slot is lost,
 * the permit is lost: `signal` aborts, and the other slots are released at once.
 */
export interface Permit extends Lease {
  /** The lowest slot that is held, from 0. `token` is the token of this slot. */
  readonly slot: number
  /** All slots that are held, in ascending order. */
  readonly slots: readonly HeldSlot[]
}

export class PermitHandle extends LeaseHandle implements Permit {
  readonly slot: number
  readonly slots: readonly HeldSlot[]

  constructor(held: Held, slots: readonly HeldSlot[]) {
    super(held)
    this.slot = slots[0]?.slot ?? 0
    this.slots = slots
  }

  override toJSON(): Record<string, unknown> {
    const slots = this.slots.map(({ slot, token }) => ({ slot, token: token.toString() }))
    return { ...super.toJSON(), slot: this.slot, slots }
  }
}

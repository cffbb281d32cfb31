import type { Permit } from '../../contract/lease.ts'
import { type Held, PermitHandle } from '../../core/lease-handle.ts'

/** A slot that a permit holds by a lease of its own. Tokens of different slots are then not comparable. */
export interface HeldSlot {
  /** 0 is the lease of the name itself. */
  readonly slot: number
  /** The fencing token of this slot. It is higher than that of every earlier holder of the slot. */
  readonly token: bigint
}

/** A permit over a store whose claims hold alone. */
export class SlotsHandle extends PermitHandle implements Permit {
  readonly heldSlots: readonly HeldSlot[]

  constructor(held: Held, heldSlots: readonly HeldSlot[]) {
    super(held)
    this.heldSlots = heldSlots
  }

  override toJSON(): Record<string, unknown> {
    const heldSlots = this.heldSlots.map(({ slot, token }) => ({ slot, token: token.toString() }))
    return { ...super.toJSON(), heldSlots }
  }
}

/** The slots of a permit, each with its token. */
export function heldSlotsOf(permit: Permit): readonly HeldSlot[] {
  const { token } = permit
  return permit instanceof SlotsHandle ? permit.heldSlots : permit.slots.map(slot => ({ slot, token }))
}

import { slotName } from '../contract/reserved.ts'
import type { Lease, LeaseSet, Permit } from '../index.ts'
import { heldSlotsOf } from '../recipes/sharing/permit.ts'

/** The token of each resource that a fence compares: of each name, or of each slot of a permit. */
export function tokensOf(held: Lease | Permit | LeaseSet): Readonly<Record<string, string>> {
  const leases = 'leases' in held ? held.leases : [held]
  const tokens =
    'slots' in held ? heldSlotsOf(held).map(({ slot, token }) => ({ name: slotName(held.name, slot), token })) : leases
  return Object.fromEntries(tokens.map(({ name, token }) => [name, token.toString()]))
}

import type { Claim, LeaseRecord } from '../../contract/store.ts'
import type { Node } from './nodes.ts'

/** The details of a claim, for people. */
export type Details = Pick<Claim, 'owner' | 'note' | 'ttl'>

/** The data of a node: the format number and the details. */
export function dataOf({ owner, note, ttl }: Details): string {
  return JSON.stringify([2, owner, note, ttl])
}

/** The data of the node of a name: the positions of the waiters that were passed, and who broke a lease last. */
export function nameDataOf(passed: readonly number[], by?: string): string {
  return passed.length === 0 && by === undefined ? '' : JSON.stringify([2, passed, by])
}

/** Does not fail for what another program wrote. */
export function passedIn(data: string): readonly number[] {
  try {
    const [, passed] = JSON.parse(data) as unknown[]
    return Array.isArray(passed) ? passed.map(Number) : []
  } catch {
    return []
  }
}

/** A holder as anybody may see it. Its last renewal is not recorded, so at most its ttl remains. */
export function heldRecord(name: string, node: Node, token: bigint, { owner, note, ttl }: Details): LeaseRecord {
  return { name, state: 'held', owner, token, note, remaining: ttl, limit: limitOf(node), slots: slotsOf(node) }
}

/** A waiter as anybody may see it. */
export function waiterRecord(name: string, node: Node, position: number, { owner, note, ttl }: Details): LeaseRecord {
  const units = node.units === 1 ? undefined : node.units
  return { name, state: 'waiting', owner, note, remaining: ttl, position, limit: limitOf(node), units }
}

/** `undefined` for 1, as in records. */
function limitOf({ limit }: Node): number | undefined {
  return limit === 1 ? undefined : limit
}

/** `undefined` for slot 0 alone, as in grants and records. */
export function slotsOf({ slots }: Node): readonly number[] | undefined {
  return slots.length === 1 && slots[0] === 0 ? undefined : slots
}

/** Does not fail for what another program wrote. */
export function detailsOf(data: string): Details {
  try {
    const [, owner, note, ttl] = JSON.parse(data) as unknown[]
    return { owner: String(owner), note: String(note), ttl: Number(ttl) || 1 }
  } catch {
    return { owner: '', note: '', ttl: 1 }
  }
}

import type { Claim, LeaseRecord } from '../../contract/store.ts'
import type { Node } from './nodes.ts'

/** The details of a claim that are shown to people. */
export type Details = Pick<Claim, 'owner' | 'note' | 'ttl'>

/** The data of a node: the format number and the details. */
export function dataOf({ owner, note, ttl }: Details): string {
  return JSON.stringify([2, owner, note, ttl])
}

/**
 * The data of the node of a name: the nodes of waiters that were passed, and the person or program that last broke a
 * lease.
 */
export function nameDataOf(passed: readonly string[], by?: string): string {
  return passed.length === 0 && by === undefined ? '' : JSON.stringify([2, passed, by])
}

/** The nodes of waiters that were passed. Does not fail for data that another program wrote. */
export function passedIn(data: string): readonly string[] {
  if (data === '') return []
  try {
    const [, passed] = JSON.parse(data) as unknown[]
    return Array.isArray(passed) ? passed.map(String) : []
  } catch {
    return []
  }
}

/** The public record of a holder. Its last renewal is not recorded, so the record shows the whole ttl as remaining. */
export function heldRecord(name: string, node: Node, token: bigint, { owner, note, ttl }: Details): LeaseRecord {
  return { name, state: 'held', owner, token, note, remaining: ttl, limit: limitOf(node), slots: slotsOf(node) }
}

/** The public record of a waiter. */
export function waiterRecord(name: string, node: Node, position: number, { owner, note, ttl }: Details): LeaseRecord {
  const units = node.units === 1 ? undefined : node.units
  return { name, state: 'waiting', owner, note, remaining: ttl, position, limit: limitOf(node), units }
}

/** The limit in a record: `undefined` for 1. */
function limitOf({ limit }: Node): number | undefined {
  return limit === 1 ? undefined : limit
}

/** The slots in grants and records: `undefined` for slot 0 alone. */
export function slotsOf({ slots }: Node): readonly number[] | undefined {
  return slots.length === 1 && slots[0] === 0 ? undefined : slots
}

/** Parses the data of a node. Does not fail for data that another program wrote. */
export function detailsOf(data: string): Details {
  try {
    const [, owner, note, ttl] = JSON.parse(data) as unknown[]
    return { owner: String(owner), note: String(note), ttl: Number(ttl) || 1 }
  } catch {
    return { owner: '', note: '', ttl: 1 }
  }
}

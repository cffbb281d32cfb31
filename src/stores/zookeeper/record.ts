import type { Claim, LeaseRecord } from '../../contract/store.ts'
import type { Node } from './nodes.ts'
import type { Stat } from './protocol.ts'

/** The details of a claim, for people. */
export type Details = Pick<Claim, 'owner' | 'note' | 'ttl'>

/** The data of a node: the format number and the details. */
export function dataOf({ owner, note, ttl }: Details): string {
  return JSON.stringify([1, owner, note, ttl])
}

/** A claim as anybody may see it. Its last renewal is not recorded, so at most its ttl remains. */
export function recordOf(name: string, node: Node, position: number, data: string, { czxid }: Stat): LeaseRecord {
  const { owner, note, ttl } = detailsOf(data)
  return position < 0
    ? { name, state: 'held', owner, token: node.token ?? czxid, note, remaining: ttl }
    : { name, state: 'waiting', owner, note, remaining: ttl, position }
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

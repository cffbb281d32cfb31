import type { Claim, LeaseRecord } from '../../contract/store.ts'
import type { Node } from './nodes.ts'
import type { Stat } from './protocol.ts'

/** What people may read of a claim. */
export type Details = Pick<Claim, 'owner' | 'note' | 'ttl'>

/** What a node of a claim holds: the number of the format, and what people may read. */
export function dataOf({ owner, note, ttl }: Details): string {
  return JSON.stringify([1, owner, note, ttl])
}

/** A claim as anybody sees it. When it was last asked for is not written anywhere: at most its ttl remains. */
export function recordOf(name: string, node: Node, position: number, data: string, { czxid }: Stat): LeaseRecord {
  const { owner, note, ttl } = detailsOf(data)
  return position < 0
    ? { name, state: 'held', owner, token: node.token ?? czxid, note, remaining: ttl }
    : { name, state: 'waiting', owner, note, remaining: ttl, position }
}

/** What another program wrote there is no reason to fail. */
export function detailsOf(data: string): Details {
  try {
    const [, owner, note, ttl] = JSON.parse(data) as unknown[]
    return { owner: String(owner), note: String(note), ttl: Number(ttl) || 1 }
  } catch {
    return { owner: '', note: '', ttl: 1 }
  }
}

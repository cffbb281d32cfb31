import type { Claim } from '../../contract/store.ts'
import { commonToken } from './holdings.ts'
import type { Answer, Member, Renewal } from './member.ts'
import type { Node } from './node.ts'
import type { Quorum, Tally } from './quorum.ts'

export const isHeld = ({ state }: Renewal): boolean => state === 'held'
export const isFree = ({ state }: Renewal): boolean => state === 'free'

/**
 * Renews the votes of a claim. Resolves to its token, or to `undefined` if the claim has certainly lost its majority.
 * Rejects if that is unknown. A node that lost its vote, for example by a restart, is asked to vote again: otherwise the
 * majority would shrink over time (redsync#149). A lease that no node knows has expired, and is not restored. `number` is
 * higher than those of all earlier renewals.
 */
export async function renew(quorum: Quorum, claim: Claim, number: number): Promise<number | undefined> {
  const { majority, size } = quorum
  const restore = (member: Member): Promise<Answer<Renewal>> => member.renew(claim, true, number)
  let isHolding = false
  const restoreAt = (node: Node, renewal: Renewal | undefined): void => {
    if (isHolding && renewal?.state === 'free' && claim.token !== undefined) void quorum.tell(node, restore)
  }

  const judge = (tally: Tally<Renewal>): Tally<Renewal> | undefined => {
    const held = tally.count(isHeld)
    isHolding = held >= majority
    if (isHolding) return tally
    // Nodes that lost the vote may answer first. Keep listening, so that it can be restored.
    const free = claim.token === undefined ? 0 : tally.count(isFree)
    const canRestore = held > 0 && held + free >= majority && held + tally.pending < majority
    return canRestore || held + free + tally.pending < majority || tally.pending === 0 ? tally : undefined
  }
  const first = await quorum.poll(member => member.renew(claim, false, number), judge, { late: restoreAt })
  const held = first.counted.filter(({ value }) => isHeld(value)).map(({ value }) => value)
  if (isHolding) {
    for (const { node, value } of [...first.counted, ...first.quarantined]) restoreAt(node, value)
    return tokenOf(claim, held)
  }

  const nodes = first.counted.filter(({ value }) => isFree(value)).map(({ node }) => node)
  if (claim.token !== undefined && held.length > 0 && held.length + nodes.length >= majority) {
    const enough = majority - held.length
    const judgeAgain = (tally: Tally<Renewal>): Tally<Renewal> | undefined => {
      const restored = tally.count(isHeld)
      return restored >= enough || restored + tally.pending < enough ? tally : undefined
    }
    const again = await quorum.poll(restore, judgeAgain, { nodes })
    if (again.count(isHeld) >= enough) return tokenOf(claim, held)
    if (again.failed.length > 0) throw quorum.unavailable(again)
  }
  if (first.counted.length - held.length > size - majority) return undefined
  throw quorum.unavailable(first)
}

function tokenOf({ token }: Claim, held: readonly Renewal[]): number {
  return token === undefined ? commonToken(held) : Number(token)
}

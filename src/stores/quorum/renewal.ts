import { LeaseError } from '../../contract/errors.ts'
import type { Claim } from '../../contract/store.ts'
import { commonToken } from './holdings.ts'
import type { Answer, Member, Renewal } from './member.ts'
import type { Node } from './node.ts'
import type { Quorum, Tally } from './quorum.ts'

export const isHeld = ({ state }: Renewal): boolean => state === 'held'
const isFree = ({ state }: Renewal): boolean => state === 'free'
const isLost = ({ state }: Renewal): boolean => state === 'lost'

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
    return canRestore || tally.count(isLost) > size - majority || tally.pending === 0 ? tally : undefined
  }
  const first = await quorum.poll(member => member.renew(claim, false, number), judge, { late: restoreAt })
  const held = first.counted.filter(({ value }) => isHeld(value)).map(({ value }) => value)
  if (isHolding) {
    for (const { node, value } of [...first.counted, ...first.quarantined]) restoreAt(node, value)
    return tokenOf(claim, held)
  }

  let lost = first.count(isLost)
  const nodes = restorable(claim, first)
  if (held.length > 0 && held.length + nodes.length >= majority) {
    const enough = majority - held.length
    const judgeAgain = (tally: Tally<Renewal>): Tally<Renewal> | undefined => {
      const restored = tally.count(isHeld)
      return restored >= enough || restored + tally.pending < enough ? tally : undefined
    }
    const again = await quorum.poll(restore, judgeAgain, { nodes })
    if (again.count(isHeld) >= enough) return tokenOf(claim, held)
    if (again.failed.length > 0) throw quorum.unavailable(again)
    lost += again.counted.length - again.count(isHeld)
  }
  if (isGone(quorum, claim, first, lost)) return undefined
  throw unknown(quorum, claim, first)
}

/**
 * Has the claim certainly lost its majority? As long as one node has its vote, a renewal restores it at those that are free.
 * That may be a node that did not answer, or does not count now. `lost` nodes cannot be restored.
 */
export function isGone(
  { majority, size }: Quorum,
  { token }: Claim,
  tally: Tally<Renewal>,
  lost: number = tally.count(isLost),
): boolean {
  const { counted, quarantined, failed } = tally
  const held = tally.count(isHeld)
  if (counted.length - held <= size - majority) return false
  const mayHave = held + failed.length > 0 || quarantined.some(({ value }) => isHeld(value))
  return token === undefined || !mayHave || lost > size - majority
}

/** The error if it is unknown whether the claim has a majority. */
export function unknown(quorum: Quorum, claim: Claim, tally: Tally<Renewal>): LeaseError {
  const error = new LeaseError('STORE_UNAVAILABLE', 'it has forgotten the lease, which a renewal can restore')
  for (const node of restorable(claim, tally)) tally.failed.push({ node, error })
  return quorum.unavailable(tally)
}

/** The nodes that forgot the lease and can get it back. */
function restorable({ token }: Claim, { counted }: Tally<Renewal>): Node[] {
  return token === undefined ? [] : counted.filter(({ value }) => isFree(value)).map(({ node }) => node)
}

function tokenOf({ token }: Claim, held: readonly Renewal[]): number {
  return token === undefined ? commonToken(held) : Number(token)
}

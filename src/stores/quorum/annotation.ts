import type { Claim } from '../../contract/store.ts'
import type { Renewal } from './member.ts'
import type { Quorum, Tally } from './quorum.ts'
import { isGone, isHeld, unknown } from './renewal.ts'

/**
 * Writes the note of a claim to a majority of its votes. Resolves to false if the claim has certainly lost its majority and
 * no renewal could restore it. Rejects if that is unknown.
 */
export async function annotate(quorum: Quorum, claim: Claim, revision: number): Promise<boolean> {
  const { majority } = quorum
  const judge = (tally: Tally<Renewal>): Tally<Renewal> | undefined =>
    tally.count(isHeld) >= majority || tally.pending === 0 ? tally : undefined
  const tally = await quorum.poll(member => member.annotate(claim, revision), judge)
  if (tally.count(isHeld) >= majority) return true
  if (isGone(quorum, claim, tally)) return false
  throw unknown(quorum, claim, tally)
}

import { LeaseError } from '../../contract/errors.ts'
import type { Claim } from '../../contract/store.ts'
import type { Renewal } from './member.ts'
import type { Quorum, Tally } from './quorum.ts'
import { isFree, isHeld } from './renewal.ts'

/**
 * Writes the note of a claim to a majority of its votes. Resolves to false if the claim has certainly lost its majority and
 * no renewal could restore it. Rejects if that is unknown.
 */
export async function annotate(quorum: Quorum, claim: Claim, revision: number): Promise<boolean> {
  const { majority, size } = quorum
  const judge = (tally: Tally<Renewal>): Tally<Renewal> | undefined =>
    tally.count(isHeld) >= majority || tally.pending === 0 ? tally : undefined
  const tally = await quorum.poll(member => member.annotate(claim, revision), judge)
  const held = tally.count(isHeld)
  if (held >= majority) return true
  const forgot = claim.token === undefined ? [] : tally.counted.filter(({ value }) => isFree(value))
  const canRestore = held > 0 && held + forgot.length >= majority
  if (!canRestore && tally.counted.length - held > size - majority) return false
  const error = new LeaseError(
    'STORE_UNAVAILABLE',
    'it has forgotten the lease, which the next renewal gives back to it',
  )
  for (const { node } of forgot) tally.failed.push({ node, error })
  throw quorum.unavailable(tally)
}

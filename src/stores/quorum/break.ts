import { LeaseError } from '../../contract/errors.ts'
import { holdersOf } from './inspection.ts'
import type { Answer, Broken, Member } from './member.ts'
import type { Quorum, Tally } from './quorum.ts'

/** The first round may find a node whose token is higher. The second one outranks that. */
const ROUNDS = 2

const isRaised = (broken: Broken): boolean => broken.isRaised

/**
 * Ends the leases of a name, or the one with the token `of`. Resolves to a token above theirs and below the next one, or to
 * `undefined` if no claim had the name.
 *
 * A break is answered once its own requests have raised the last token of a majority, where they left no vote. Each earlier
 * lease had a vote there, so its token is lower and no renewal finds a majority. Each later lease has a higher token at a
 * majority. The requests end only votes of claims that had one before, with no higher token. So a late one ends no lease of a
 * later claim. If the break was rejected, it may end that of a claim that was only counting its votes then.
 */
export async function breakLeases(
  quorum: Quorum,
  name: string,
  of: bigint | undefined,
  assertWanted: () => void,
): Promise<bigint | undefined> {
  const { majority } = quorum
  const claims = await holdersOf(quorum, name, of)
  if (claims.size === 0) return undefined
  assertWanted()
  let hasEnded = false
  const ask = (token: number): Promise<Tally<Broken>> => {
    const put = async (member: Member): Promise<Answer<Broken>> => {
      const answer = await member.break(name, claims, token)
      hasEnded ||= answer.value.hasEnded
      return answer
    }
    return quorum.poll(put, tally => {
      const raised = tally.count(isRaised)
      const isSettled = raised >= majority ? hasEnded : raised + tally.pending < majority
      return isSettled || tally.pending === 0 ? tally : undefined
    })
  }
  let token = Math.max(...claims.values())
  for (let round = 1; round <= ROUNDS; round += 1) {
    token = Math.min(token + 1, Number.MAX_SAFE_INTEGER)
    const tally = await ask(token)
    // A claim with votes of a minority may have given them up.
    if (tally.count(isRaised) >= majority) return hasEnded ? BigInt(token) : undefined
    const answers = tally.counted.length + tally.pending
    if (answers < majority || (round === ROUNDS && tally.failed.length > 0)) throw quorum.unavailable(tally)
    token = Math.max(token, ...tally.counted.map(({ value }) => value.token))
  }
  const message = 'votes were ended, and others were granted meanwhile: break the name again to outrank those too'
  throw new LeaseError('OUTCOME_UNKNOWN', message)
}

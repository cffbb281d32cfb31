import type { NameState } from '../rules/state.ts'
import type { Stored } from './record.ts'
import type { Pending } from './request.ts'

/** The share of the largest value that new holders and waiters may fill. The rest is for renewals, notes and withdrawals. */
const FOR_CLAIMS = 0.9

/**
 * The requests for which a record has no room: the last ones that bring a new claim, and without such ones all. `before` is
 * the state that they were decided on, and `value` what `stored` is written as.
 */
export function withoutRoom(
  asked: readonly Pending[],
  { holders, waiters }: NameState,
  stored: Stored,
  value: string,
  maxBytes: number,
): Pending[] {
  const known = new Set([...holders, ...waiters].map(({ id }) => id))
  const joining = new Map([...stored.holders, ...stored.waiters].map(each => [each.id, each]))
  for (const id of known) joining.delete(id)
  let excess = Buffer.byteLength(value) - (joining.size > 0 ? FOR_CLAIMS : 1) * maxBytes
  if (joining.size === 0) return excess > 0 ? [...asked] : []
  return asked.toReversed().filter(({ id = '' }) => {
    const joined = joining.get(id)
    if (excess <= 0 || !joined) return false
    excess -= Buffer.byteLength(JSON.stringify(joined))
    return true
  })
}

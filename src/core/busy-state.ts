import { visible } from '../contract/record.ts'
import { type Busy, type Claim, LARGEST_LIMIT } from '../contract/store.ts'
import type { Core } from './core.ts'
import { heldHere, IF_INSIDE } from './self-wait.ts'

/** Says why a name is busy for a claim, for the message of an error: `… is held by …`. */
export function busyState(
  { name, owner, limit, units = 1 }: Claim,
  { holder: stored, ahead }: Partial<Pick<Busy, 'holder' | 'ahead'>>,
  { clock, heldLease }: Pick<Core, 'clock' | 'heldLease'>,
): string {
  if (!stored) return ahead ? `free, but ${waitBefore(ahead)}` : 'not available, holder unknown'
  const holder = visible(stored)
  const remaining = `for another ${holder.remaining} ms unless renewed`
  // Another owner means other locks, so no search is needed. The token decides, because locks may share an owner.
  const own = limit === undefined && holder.owner === owner ? heldLease(name) : undefined
  if (own && own.token === holder.token) return `${heldHere(clock, own)}, ${remaining}; ${IF_INSIDE}`
  if (limit === undefined) return `held by ${holder.owner}, ${remaining}`
  const wanted = units === 1 ? 'a slot' : `${units} slots`
  const which = holder.slots ? ` (slot ${holder.slots.join(', ')})` : ''
  const queue = ahead ? `${waitBefore(ahead)}, and ` : ''
  const asked = limit === LARGEST_LIMIT ? 'a reader' : `${wanted} of ${limit}`
  return `not free for ${asked}: ${queue}one holder is ${holder.owner}${which}, ${remaining}`
}

function waitBefore(count: number): string {
  return count === 1 ? '1 claim waits before this one' : `${count} claims wait before this one`
}

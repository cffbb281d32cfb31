import { type Busy, type Claim, LARGEST_LIMIT } from '../contract/store.ts'

/** Text for a call that waits for a lease of its own process. If another request holds it, that is no mistake. */
export const IF_INSIDE = 'if this call is inside it, leases are not re-entrant'

/**
 * Says why a name is busy for a claim, for the message of an error: `… is held by …`. `own`: such a text about a lease of
 * these locks, if it is the holder.
 */
export function busyState(
  { limit, units = 1 }: Claim,
  { holder, ahead }: Partial<Pick<Busy, 'holder' | 'ahead'>>,
  own: string | undefined,
): string {
  if (!holder) return ahead ? `free, but ${waitBefore(ahead)}` : 'not available, holder unknown'
  const remaining = `for another ${holder.remaining} ms unless renewed`
  if (own) return `${own}, ${remaining}; ${IF_INSIDE}`
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

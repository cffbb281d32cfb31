import { slotsText } from '../../contract/record.ts'
import type { LeaseRecord } from '../../index.ts'
import { formatDuration } from '../duration.ts'

/**
 * `held by app:12, for another 2.9 s unless renewed (token 17, "nightly run")`. Of a shared name, of which a busy answer has one
 * of the holders: `not free: one holder is app:12, for another …`. Unknown parts are left out.
 */
export function describeHolder(holder: LeaseRecord | undefined, isShared = false): string {
  if (!holder) return isShared ? 'not free' : 'held by another process'
  const { owner, token, slots, note, remaining } = holder
  const details = [
    ...(isShared && slots ? [slotsText(slots)] : []),
    ...(token === undefined ? [] : [`token ${token}`]),
    ...(note ? [JSON.stringify(note)] : []),
  ].join(', ')
  const who = `${isShared ? 'not free: one holder is' : 'held by'} ${owner}`
  return `${who}, for another ${formatDuration(remaining)} unless renewed${details && ` (${details})`}`
}

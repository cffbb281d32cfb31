import { slotsText } from '../../contract/record.ts'
import type { LeaseRecord } from '../../index.ts'
import { formatDuration } from '../duration.ts'

/**
 * Describes the holder: `held by app:12, for another 2.9 s unless renewed (token 17, "nightly run")`. A busy answer has
 * only one of the holders of a shared name: `not free: one holder is app:12, for another …`. Unknown parts are left out.
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

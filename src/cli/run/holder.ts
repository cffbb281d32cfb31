import type { LeaseRecord } from '../../index.ts'
import { formatDuration } from '../duration.ts'

/** `held by app:12 for another 2.9 s (token 17, "nightly run")`, or what is known of it. */
export function heldBy(holder: LeaseRecord | undefined): string {
  if (!holder) return 'held by another'
  const about = [
    ...(holder.token === undefined ? [] : [`token ${holder.token}`]),
    ...(holder.note ? [JSON.stringify(holder.note)] : []),
  ]
  return `held by ${holder.owner} for another ${formatDuration(holder.remaining)}${about.length ? ` (${about.join(', ')})` : ''}`
}

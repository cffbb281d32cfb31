import type { LeaseRecord } from '../../index.ts'
import { formatDuration } from '../duration.ts'

/** `held by app:12 for another 2.9 s (token 17, "nightly run")`. Unknown parts are left out. */
export function describeHolder(holder: LeaseRecord | undefined): string {
  if (!holder) return 'held by another process'
  const details = [
    ...(holder.token === undefined ? [] : [`token ${holder.token}`]),
    ...(holder.note ? [JSON.stringify(holder.note)] : []),
  ]
  return `held by ${holder.owner} for another ${formatDuration(holder.remaining)}${details.length ? ` (${details.join(', ')})` : ''}`
}

import { isMarker, MARKER_SUFFIX, titleOf } from '../../contract/reserved.ts'
import type { LeaseRecord } from '../../index.ts'

/** A record as it is printed: a marker is a run that succeeded, under the name that ran. */
export interface Shown extends Omit<LeaseRecord, 'state'> {
  readonly state: LeaseRecord['state'] | 'ran'
}

export function shown(record: LeaseRecord): Shown {
  return isMarker(record.name) ? { ...record, name: ranName(record.name), state: 'ran' } : record
}

/** The name that ran, which every command accepts. Any other name as people read it. */
export function ranName(name: string): string {
  return isMarker(name) ? name.slice(0, -MARKER_SUFFIX.length) : titleOf(name)
}

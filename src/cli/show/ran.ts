import { isMarker, nameOf } from '../../contract/reserved.ts'
import type { LeaseRecord } from '../../index.ts'

/** A record as it is printed. A marker is printed as a successful run, under the name of the work that ran. */
export interface Shown extends Omit<LeaseRecord, 'state'> {
  readonly state: LeaseRecord['state'] | 'ran'
}

export function shown(record: LeaseRecord): Shown {
  return isMarker(record.name) ? { ...record, name: nameOf(record.name), state: 'ran' } : record
}

import { type Lease, subscribe } from '../../src/index.ts'

/** Ids of claims. Old locks that are held with a lease have them as their values. */
const ids = new WeakMap<Lease, string>()
let isRecording = false

/** Records ids from now on. */
export function recordIds(): void {
  if (!isRecording) subscribe('lease_acquired', ({ id, lease }) => void ids.set(lease, id))
  isRecording = true
}

/** The value of a lock whose first lease this is. It was acquired after `recordIds`. */
export function valueOf(first: Lease): string {
  return ids.get(first) as string
}

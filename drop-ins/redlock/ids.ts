import { type Lease, subscribe } from '../../src/index.ts'

/** Ids of claims. Old locks that are held with a lease have them as their values. */
const ids = new WeakMap<Lease, string>()
let isRecording = false

/** Records ids from now on. */
export function recordIds(): void {
  if (!isRecording) subscribe('lease_acquired', ({ id, lease }) => void ids.set(lease, id))
  isRecording = true
}

/** The id of a claim that got this lease after `recordIds`. */
export function idOf(lease: Lease): string {
  return ids.get(lease) as string
}

import { LONGEST_SHARED, partOf, SEPARATOR } from '../../contract/reserved.ts'
import type { LeaseRecord, Locks } from '../../index.ts'

/** Records of one name, slot 10 after slot 9. Those of one slot keep their order. */
export function bySlot<Part extends { readonly name: string }>(records: readonly Part[]): readonly Part[] {
  return records.toSorted((a, b) => byNumber.compare(partOf(a.name).part, partOf(b.name).part))
}

const byNumber = new Intl.Collator('en', { numeric: true })

/** The leases and waiters of all parts of a name. */
export async function partsOf(locks: Pick<Locks, 'list'>, name: string): Promise<LeaseRecord[]> {
  return Buffer.byteLength(name) > LONGEST_SHARED ? [] : Array.fromAsync(locks.list(name + SEPARATOR))
}

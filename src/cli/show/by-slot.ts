import { partOf } from '../../contract/reserved.ts'

/** Records of one name, slot 10 after slot 9. Those of one slot keep their order. */
export function bySlot<Part extends { readonly name: string }>(records: readonly Part[]): readonly Part[] {
  return records.toSorted((a, b) => byNumber.compare(partOf(a.name).part, partOf(b.name).part))
}

const byNumber = new Intl.Collator('en', { numeric: true })

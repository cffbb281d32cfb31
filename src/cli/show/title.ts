import { partOf } from '../../contract/reserved.ts'

/** How a stored name is printed: `backup (slot 1)` for a slot, so that no output has the character that separates them. */
export function title(lease: string): string {
  const { name, part } = partOf(lease)
  return part ? `${name} (${part})` : name
}

/** Records of one name, slot 10 after slot 9. Those of one slot keep their order. */
export function bySlot<Part extends { readonly name: string }>(records: readonly Part[]): readonly Part[] {
  return records.toSorted((a, b) => byNumber.compare(partOf(a.name).part, partOf(b.name).part))
}

const byNumber = new Intl.Collator('en', { numeric: true })

import { partOf } from '../../contract/reserved.ts'

/** How a stored name is printed: `backup (slot 1)` for a slot, so that no output has the character that separates them. */
export function title(lease: string): string {
  const { name, part } = partOf(lease)
  return part ? `${name} (${part})` : name
}

/** Separates a name from what this library adds to it. No name of a caller contains it. */
export const SEPARATOR = '\u241f'

/** In bytes of UTF-8, of a name, an owner or a note: every engine can store and index as many. */
export const LONGEST_TEXT = 255

/** In bytes of UTF-8, of a shared name: the names of its slots are longer, and have at most `LONGEST_TEXT`. */
export const LONGEST_SHARED = 240

/** The end of the name of a marker: the command line acquires it as a lease that a successful run leaves behind. */
export const MARKER_SUFFIX: string = `${SEPARATOR}ran`

/** The option of a call that acquires a marker. No entry point exports it. */
export const MARKER: unique symbol = Symbol('marker')

/** The lease of one slot. Slot 0 is the lease of the name itself, so a semaphore of one is a lock. */
export function slotName(name: string, slot: number): string {
  return slot === 0 ? name : name + SEPARATOR + slot
}

/** The lease of the gate, which each call holds while it looks for free slots. */
export function gateName(name: string): string {
  return `${name}${SEPARATOR}gate`
}

/** The name that a caller knows, and which part of it this lease is; empty if it is the lease of the name itself. */
export function partOf(lease: string): { readonly name: string; readonly part: string } {
  const at = lease.indexOf(SEPARATOR)
  if (at < 0) return { name: lease, part: '' }
  const part = lease.slice(at + SEPARATOR.length)
  return { name: lease.slice(0, at), part: /^\d+$/.test(part) ? `slot ${part}` : part }
}

/** How a stored name is printed: `backup (slot 1)` for a slot, so that no output has the character that separates them. */
export function titleOf(lease: string): string {
  const { name, part } = partOf(lease)
  return part ? `${name} (${part})` : name
}

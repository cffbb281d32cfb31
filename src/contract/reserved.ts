/** Separates a name from what this library adds to it. No name of a caller contains it. */
export const SEPARATOR = '\u241f'

/** In bytes of UTF-8, of a name, an owner or a note: every engine can store and index as many. */
export const LONGEST_TEXT = 255

/** The end of the name of a marker: the command line acquires it as a lease that a successful run leaves behind. */
export const MARKER_SUFFIX: string = `${SEPARATOR}ran`

/** The option of a call that acquires a marker. No entry point exports it. */
export const MARKER: unique symbol = Symbol('marker')

/** How a stored name is printed: `nightly (ran)` for a marker, so that no output has the character that separates them. */
export function titleOf(lease: string): string {
  const [name = '', part] = lease.split(SEPARATOR)
  return part === undefined ? name : `${name} (${part})`
}

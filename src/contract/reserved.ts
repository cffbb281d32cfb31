/** Separates a name from what this library adds to it. No name of a caller contains it. */
export const SEPARATOR = '\u241f'

/** In bytes of UTF-8, of a name, an owner or a note: every engine can store and index as many. */
export const LONGEST_TEXT = 255

/** The end of the name of a marker, the lease that a successful run of `once` leaves behind. */
export const MARKER_SUFFIX: string = `${SEPARATOR}ran`

/** The name of the marker of a name. */
export function markerOf(name: string): string {
  return name + MARKER_SUFFIX
}

/** Is this the name of a marker? It has no holder that could still be working. */
export function isMarker(name: string): boolean {
  return name.endsWith(MARKER_SUFFIX)
}

/** How a screen shows a stored name: `nightly (ran)` for a marker. So nothing shows the character that separates them. */
export function titleOf(lease: string): string {
  const [name = '', part] = lease.split(SEPARATOR)
  return part === undefined ? name : `${name} (${part})`
}

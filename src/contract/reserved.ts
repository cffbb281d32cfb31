import { printable } from './printable.ts'

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

/** The name that ran, if this is its marker. Every command accepts it. Else the name itself. */
export function nameOf(stored: string): string {
  return isMarker(stored) ? stored.slice(0, -MARKER_SUFFIX.length) : stored
}

/**
 * A stored name for people, the same on every screen. What has no shape is escaped, as `printable` does. A marker has the
 * name that ran: show `ran` as its state.
 */
export function titleOf(stored: string): string {
  return printable(nameOf(stored))
}

/** A message for people, with its quoted names as `titleOf` shows them. */
export function messageText(message: string): string {
  const lines = message.replaceAll(`${MARKER_SUFFIX}"`, '"').split('\n')
  return lines.map(printable).join('\n')
}

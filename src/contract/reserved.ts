import { printable } from './printable.ts'

/** Separates a name from what this library adds to it. No name of a caller contains it. */
export const SEPARATOR = '\u241f'

/** The longest name, owner or note, in bytes of UTF-8. Every engine can store and index that many. */
export const LONGEST_TEXT = 255

/** The end of the name of a marker, the lease that a successful run of `once` leaves behind. */
export const MARKER_SUFFIX: string = `${SEPARATOR}ran`

/** The name of the marker for `name`. */
export function markerOf(name: string): string {
  return name + MARKER_SUFFIX
}

/** Is this the name of a marker? It has no holder that could still be working. */
export function isMarker(name: string): boolean {
  return name.endsWith(MARKER_SUFFIX)
}

/** For a marker, the name of the work that ran; otherwise the name itself. Every command accepts the result. */
export function nameOf(stored: string): string {
  return isMarker(stored) ? stored.slice(0, -MARKER_SUFFIX.length) : stored
}

/**
 * A stored name for people, the same on every screen. `printable` escapes characters without a shape. A marker is shown
 * by the name of the work that ran: show `ran` as its state.
 */
export function titleOf(stored: string): string {
  return printable(nameOf(stored))
}

/** A message for people. Its quoted names are shown by `titleOf`. */
export function messageText(message: string): string {
  const lines = message.replaceAll(`${MARKER_SUFFIX}"`, '"').split('\n')
  return lines.map(printable).join('\n')
}

/**
 * Characters without a shape of their own: control, invisible, private and unassigned characters, except variation
 * selectors, and the separator of reserved names. A terminal interprets some of them. Others make one text look like
 * another, or are shown as boxes.
 */
export const INVISIBLE: RegExp = /[\p{C}\p{Zl}\p{Zp}\u241f]|(?!\p{VS})\p{DI}/gu

/** Escapes these characters, as in `\u{1b}`. */
export function printable(text: string): string {
  if (/^[\x20-\x7e]*$/.test(text)) return text // a shortcut for most texts: a tenth of the time
  return text.replace(INVISIBLE, character => `\\u{${character.codePointAt(0)?.toString(16)}}`)
}

/**
 * Invisible characters, except variation selectors. A terminal interprets some of them. Others make one text look like
 * another.
 */
export const INVISIBLE: RegExp = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]|(?!\p{VS})\p{DI}/gu

/** Escapes control characters and invisible ones, as in `\u{1b}`. */
export function printable(text: string): string {
  return text.replace(INVISIBLE, character => `\\u{${character.codePointAt(0)?.toString(16)}}`)
}

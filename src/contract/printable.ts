/** All invisible characters except variation selectors, so what a terminal interprets, and what can imitate another text. */
const INVISIBLE = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]|(?!\p{VS})\p{DI}/gu

/** Escapes control characters and invisible ones, as in `\u{1b}`. */
export function printable(text: string): string {
  return text.replace(INVISIBLE, character => `\\u{${character.codePointAt(0)?.toString(16)}}`)
}

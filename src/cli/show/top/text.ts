/** How text looks. */
export type Style = 'plain' | 'bold' | 'dim' | 'warn' | 'bad' | 'chosen'

/** Text of one style. */
export type Run = readonly [text: string, style?: Style]

/** A line of the screen, from the left. */
export type Line = readonly Run[]

/** What takes two columns of a terminal: scripts of East Asia, and emoji. */
const WIDE =
  /^[\p{Script=Han}\p{Script=Hangul}\p{Script=Hiragana}\p{Script=Katakana}\p{Emoji_Presentation}\u3000-\u303f\uff01-\uff60]|\ufe0f/u

const segmenter = new Intl.Segmenter(undefined, { granularity: 'grapheme' })

/** What a reader takes for one character each, with the columns that it takes. */
export function* graphemes(text: string): Iterable<readonly [grapheme: string, width: 1 | 2]> {
  // Most text is plain, and to segment it takes a hundred times as long.
  if (/^[\x20-\x7e]*$/.test(text)) for (const character of text) yield [character, 1]
  else for (const { segment } of segmenter.segment(text)) yield [segment, WIDE.test(segment) ? 2 : 1]
}

/** The columns that the text takes. */
export function widthOf(text: string): number {
  let width = 0
  for (const [, columns] of graphemes(text)) width += columns
  return width
}

/** The text in exactly so many columns: filled with spaces, or cut with `…`. */
export function filled(text: string, columns: number): string {
  if (columns <= 0) return ''
  const width = widthOf(text)
  if (width <= columns) return text + ' '.repeat(columns - width)
  let cut = ''
  let used = 0
  for (const [grapheme, taken] of graphemes(text)) {
    if (used + taken > columns - 1) break
    cut += grapheme
    used += taken
  }
  return `${cut}…${' '.repeat(columns - 1 - used)}`
}

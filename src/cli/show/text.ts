/** The style of a text. */
export type Style = 'plain' | 'bold' | 'dim' | 'warn' | 'bad' | 'chosen'

/** Text of one style. */
export type Run = readonly [text: string, style?: Style]

/** A line of the screen: its texts from left to right. */
export type Line = readonly Run[]

/** Characters that take two columns of a terminal: East Asian scripts except half-width letters, and emoji. */
const WIDE =
  /^(?![\uff61-\uffdc])[\p{Script=Han}\p{Script=Hangul}\p{Script=Hiragana}\p{Script=Katakana}\p{Emoji_Presentation}\u2ff0-\u303f\u3041-\u33ff\ufe30-\ufe6f\uff01-\uff60\uffe0-\uffe6]|\ufe0f/u

/** Marks, which have no column of their own. */
const MARKS = /\p{M}/gu

/** Plain text. Most text is plain, and segmenting it takes a hundred times as long. */
const PLAIN = /^[\x20-\x7e≥…]*$/

const segmenter = new Intl.Segmenter(undefined, { granularity: 'grapheme' })

/** Yields each character as a reader sees it, with the columns that it takes. */
export function* graphemes(text: string): Iterable<readonly [grapheme: string, width: number]> {
  if (PLAIN.test(text)) for (const character of text) yield [character, 1]
  else
    for (const { segment } of segmenter.segment(text)) {
      const letters = [...segment.replace(MARKS, '')].length
      if (letters === 0)
        yield [`\u25cc${segment}`, 1] // a mark needs a base character: a dotted circle
      else yield [segment, WIDE.test(segment) ? 2 : letters]
    }
}

/** The columns that the text takes. */
export function widthOf(text: string): number {
  if (PLAIN.test(text)) return text.length
  let width = 0
  for (const [, columns] of graphemes(text)) width += columns
  return width
}

/** Splits the text into lines of at most `columns` columns. */
export function wrapped(text: string, columns: number): string[] {
  const lines = ['']
  let used = 0
  for (const [grapheme, taken] of graphemes(text)) {
    if (used > 0 && used + taken > columns) {
      lines.push('')
      used = 0
    }
    lines[lines.length - 1] += grapheme
    used += taken
  }
  return lines
}

/** Splits the text like `wrapped`, but between words if possible. */
export function wrappedWords(text: string, columns: number): string[] {
  const lines: string[] = []
  for (const word of text.split(' ')) {
    const longer = `${lines.at(-1)} ${word}`
    if (lines.length > 0 && widthOf(longer) <= columns) lines[lines.length - 1] = longer
    else lines.push(word)
  }
  return lines.flatMap(line => wrapped(line, columns))
}

/** The end of the text, if it takes more than `columns` columns. */
export function endOf(text: string, columns: number): string {
  const all = [...graphemes(text)]
  let left = columns - widthOf(text)
  if (left >= 0) return text
  left -= 1 // for the sign that something is left out
  while (left < 0 && all.length > 0) left += all.shift()?.[1] ?? 0
  return `…${all.map(([grapheme]) => grapheme).join('')}`
}

/** The text without its middle, if it takes more than `columns` columns. */
export function shortened(text: string, columns: number): string {
  if (widthOf(text) <= columns) return text
  const start = filled(text, Math.ceil(columns / 2)).trimEnd()
  return start + endOf(text, columns - widthOf(start) + 1).slice(1)
}

/** The text in exactly `columns` columns: filled with spaces, or cut with `…`. */
export function filled(text: string, columns: number): string {
  if (columns <= 0) return ''
  const fits = widthOf(text) <= columns
  const space = fits ? columns : columns - 1
  let cut = ''
  let used = 0
  for (const [grapheme, taken] of graphemes(text)) {
    if (used + taken > space) break
    cut += grapheme
    used += taken
  }
  return `${cut}${fits ? '' : '…'}${' '.repeat(space - used)}`
}

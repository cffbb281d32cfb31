import { graphemes, type Line, type Style } from './text.ts'

/** The codes of a style. Without colour, what is chosen and what is bad differ by signs in the text as well. */
const CODES: Record<Style, readonly [plain: string, colour: string]> = {
  plain: ['0', '0'],
  bold: ['0;1', '0;1'],
  dim: ['0;2', '0;2'],
  warn: ['0', '0;33'],
  bad: ['0;1', '0;31'],
  chosen: ['0;7', '0;7'],
}

/** One column. Of a wide character the first has it, and the second is empty. */
interface Cell {
  readonly text: string
  readonly style: Style
}

const BLANK: Cell = { text: ' ', style: 'plain' }

/** What a terminal shows, and the text that changes it to what it should show. */
export class Screen {
  readonly #hasColour: boolean
  #shown: Cell[][] = []
  #columns = 0

  /** `hasColour`: may it write colours? */
  constructor(hasColour: boolean) {
    this.#hasColour = hasColour
  }

  /** Nothing is known of what the terminal shows: the next frame is written as a whole. */
  forget(): void {
    this.#shown = []
    this.#columns = 0
  }

  /** What to write so that the terminal shows these lines. Empty if it shows them already. */
  draw(lines: readonly Line[], columns: number, rows: number): string {
    const next = Array.from({ length: rows }, (_, row) => cellsOf(lines[row] ?? [], columns))
    const isNew = columns !== this.#columns || rows !== this.#shown.length
    let text = isNew ? '\x1b[0m\x1b[2J' : ''
    for (const [row, cells] of next.entries())
      text += this.#change(row, (isNew ? undefined : this.#shown[row]) ?? [], cells)
    this.#shown = next
    this.#columns = columns
    // A terminal that knows synchronized output (DECSET 2026) shows all of it at once; others ignore the codes.
    return text && `\x1b[?2026h${text}\x1b[0m\x1b[?2026l`
  }

  #change(row: number, before: readonly Cell[], cells: readonly Cell[]): string {
    let text = ''
    let style: Style | undefined
    let at = -1
    for (const [column, cell] of cells.entries()) {
      const shown = before[column] ?? BLANK
      if (shown.text === cell.text && shown.style === cell.style) continue
      if (at !== column) text += `\x1b[${row + 1};${column + 1}H`
      if (style !== cell.style) text += `\x1b[${CODES[cell.style][this.#hasColour ? 1 : 0]}m`
      style = cell.style
      text += cell.text
      at = column + 1
    }
    return text
  }
}

function cellsOf(line: Line, columns: number): Cell[] {
  const cells: Cell[] = []
  for (const [text, style = 'plain'] of line)
    for (const [grapheme, width] of graphemes(text)) {
      if (cells.length + width > columns) return cells
      cells.push({ text: grapheme, style })
      if (width === 2) cells.push({ text: '', style })
    }
  while (cells.length < columns) cells.push(BLANK)
  return cells
}

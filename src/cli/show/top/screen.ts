import { graphemes, type Line, type Style } from '../text.ts'

/** The codes of a style. For terminals without colour, signs in the text also show what is chosen and what is bad. */
const CODES: Record<Style, readonly [plain: string, colour: string]> = {
  plain: ['0', '0'],
  bold: ['0;1', '0;1'],
  dim: ['0;2', '0;2'],
  warn: ['0', '0;33'],
  bad: ['0;1', '0;31'],
  chosen: ['0;7', '0;7'],
}

/** One column. The first column of a wide character has its text, and the others are empty. */
interface Cell {
  readonly text: string
  readonly style: Style
}

const BLANK: Cell = { text: ' ', style: 'plain' }

/** Is the width unsure? Terminals differ in the columns of clusters of characters and of emoji. */
const isUnsure = ({ text }: Cell): boolean => text.length > 1

/** Knows what a terminal shows, and makes the text that changes it to the next frame. */
export class Screen {
  readonly #hasColour: boolean
  #shown: Cell[][] = []
  #columns = 0

  /** `hasColour`: may it write colours? */
  constructor(hasColour: boolean) {
    this.#hasColour = hasColour
  }

  /** Forgets what the terminal shows, so that the next frame is written as a whole. */
  forget(): void {
    this.#shown = []
    this.#columns = 0
  }

  /** Returns the text to write so that the terminal shows these lines. Empty if it shows them already. */
  draw(lines: readonly Line[], columns: number, rows: number): string {
    const next = Array.from({ length: rows }, (_, row) => cellsOf(lines[row] ?? [], columns))
    const isNew = columns !== this.#columns || rows !== this.#shown.length
    let text = isNew ? '\x1b[0m\x1b[2J' : ''
    for (const [row, cells] of next.entries()) text += this.#change(row, isNew ? [] : (this.#shown[row] ?? []), cells)
    this.#shown = next
    this.#columns = columns
    // A terminal that knows synchronized output (DECSET 2026) shows all of it at once; others ignore the codes.
    return text && `\x1b[?2026h${text}\x1b[0m\x1b[?2026l`
  }

  #change(row: number, before: readonly Cell[], cells: readonly Cell[]): string {
    let text = ''
    let style: Style | undefined
    let at = -1
    let known = before
    if ((before.some(isUnsure) || cells.some(isUnsure)) && cells.some((cell, at) => isOther(cell, before[at]))) {
      text = `\x1b[${row + 1};1H\x1b[0m\x1b[2K` // unsure characters may reach into columns that do not change
      known = []
    }
    for (const [column, cell] of cells.entries()) {
      if (!isOther(cell, known[column])) continue
      if (cell.text === '' && at !== column) continue // of a cell that was put in its place alone
      if (at !== column) text += `\x1b[${row + 1};${column + 1}H`
      if (style !== cell.style) text += `\x1b[${CODES[cell.style][this.#hasColour ? 1 : 0]}m`
      style = cell.style
      text += cell.text
      at = isUnsure(cell) ? -1 : column + 1
    }
    return text
  }
}

function isOther(cell: Cell, { text, style }: Cell = BLANK): boolean {
  return cell.text !== text || cell.style !== style
}

function cellsOf(line: Line, columns: number): Cell[] {
  const cells: Cell[] = []
  for (const [text, style = 'plain'] of line)
    for (const [grapheme, width] of graphemes(text)) {
      if (cells.length + width > columns) return cells
      cells.push({ text: grapheme, style })
      for (let more = 1; more < width; more += 1) cells.push({ text: '', style })
    }
  while (cells.length < columns) cells.push(BLANK)
  return cells
}

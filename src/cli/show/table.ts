import { paint, printable } from '../output.ts'
import { filled, shortened, widthOf } from './text.ts'

/** A column of a table. */
export interface Column {
  readonly title: string
  /** Is it a column of numbers? They are aligned to the right and never cut. */
  readonly isNumber?: boolean
  /** The rank. If the table is too wide, the columns with the lowest ranks stay. */
  readonly rank: number
  /** The least width of a text. With less space the column is left out. @default all that its cells need */
  readonly least?: number
  /** The largest share of the terminal that it takes, unless it is the only column. */
  readonly share?: number
  /** The least width of a terminal that shows the column. */
  readonly from?: number
  /** The point at which a long text is cut. A name is cut in the middle, because its ends identify it. @default middle */
  readonly cut?: 'middle' | 'end'
}

/** Shares of a column's cells that get enough space. All columns reach one share before any goes on to the next. */
const SHARES = [0.9, 0.98, 1]

/** The text between two columns. */
const GAP = '  '

/** The width of the terminal to which a command prints. `undefined`: it prints to a file or a pipe, which cut nothing. */
export function terminalWidth(): number | undefined {
  const { isTTY, columns } = process.stdout
  return isTTY ? columns || 80 : undefined
}

/**
 * The widths of the columns, so that a line takes at most `width`. 0: the column is left out, as it is if all of its cells
 * are empty. `indent` is the free space before each line. One long cell does not take space from the usual cells of other
 * columns.
 */
export function widthsOf(
  columns: readonly Column[],
  rows: readonly (readonly string[])[],
  width: number = Infinity,
  indent = 0,
): number[] {
  const ranked = columns
    .map(({ title, from = 0, ...column }, index) => {
      const cells = rows.map(row => widthOf(row[index] ?? '')).sort((a, b) => a - b)
      const isShown = width >= from && cells.at(-1) !== 0
      const needs = SHARES.map(part => Math.max(title.length, cells[Math.floor(part * (cells.length - 1))] ?? 0))
      return { ...column, index, needs: isShown ? needs : [] }
    })
    .sort((a, b) => a.rank - b.rank)
  const widths = columns.map(() => 0)
  let left = width - indent + GAP.length
  for (const { index, isNumber, needs, least = Infinity } of ranked) {
    const most = needs.at(-1) ?? 0
    const given = isNumber ? most : Math.min(least, most)
    if (given === 0) continue
    if (left < given + GAP.length) break
    widths[index] = given
    left -= given + GAP.length
  }
  const isAlone = widths.filter(given => given > 0).length === 1
  for (const round of SHARES.keys())
    for (const { index, share = 1, needs } of ranked) {
      const given = widths[index] ?? 0
      const limit = Math.min(needs[round] ?? 0, Math.floor((isAlone ? 1 : share) * width))
      const more = given === 0 ? 0 : Math.max(0, Math.min(left, limit - given))
      widths[index] = given + more
      left -= more
    }
  return widths
}

/** The cells in columns of these widths. */
export function lineOf(columns: readonly Column[], widths: readonly number[], cells: readonly string[]): string {
  return columns
    .flatMap(({ isNumber, cut }, index) => {
      const width = widths[index] ?? 0
      if (width === 0) return []
      const cell = cells[index] ?? ''
      const text = cut === 'end' ? cell : shortened(cell, width)
      return [isNumber ? ' '.repeat(width - widthOf(text)) + text : filled(text, width)]
    })
    .join(GAP)
    .trimEnd()
}

/** Makes a table that fits into `width`. Cells are escaped, because they may come from a store. */
export function table(columns: readonly Column[], rows: readonly (readonly string[])[], width?: number): string {
  const all = rows.map(cells => cells.map(printable))
  const widths = widthsOf(columns, all, width)
  const titles = columns.map(({ title }) => title)
  return [paint('bold', lineOf(columns, widths, titles)), ...all.map(cells => lineOf(columns, widths, cells))].join(
    '\n',
  )
}

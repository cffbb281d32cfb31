import { paint, printable } from '../output.ts'
import { filled, widthOf } from './top/text.ts'

/** A table with aligned columns. Cells may come from a store: they are escaped. */
export function table(titles: readonly string[], rows: readonly (readonly string[])[]): string {
  const all = [titles, ...rows].map(cells => cells.map(printable))
  // Not Math.max of all: a call takes about 120,000 arguments.
  const widths = titles.map((_, column) =>
    all.reduce((most, cells) => Math.max(most, widthOf(cells[column] as string)), 0),
  )
  const lines = all.map(cells =>
    cells
      .map((cell, column) => filled(cell, widths[column] as number))
      .join('  ')
      .trimEnd(),
  )
  return lines.map((line, i) => (i === 0 ? paint('bold', line) : line)).join('\n')
}

import { paint, printable } from '../output.ts'

/** A table with aligned columns. Cells may come from a store: they are escaped. */
export function table(titles: readonly string[], rows: readonly (readonly string[])[]): string {
  const all = [titles, ...rows].map(cells => cells.map(printable))
  const widths = titles.map((_, column) => Math.max(...all.map(cells => (cells[column] as string).length)))
  const lines = all.map(cells =>
    cells
      .map((cell, column) => cell.padEnd(widths[column] as number))
      .join('  ')
      .trimEnd(),
  )
  return lines.map((line, i) => (i === 0 ? paint('bold', line) : line)).join('\n')
}

import type { LeaseRecord } from '../index.ts'
import { formatDuration } from './duration.ts'
import { open } from './open.ts'
import { paint } from './output.ts'

const TITLES = ['NAME', 'STATE', 'OWNER', 'TOKEN', 'REMAINING', 'NOTE']

/** `holdfast ls`: every holder, each followed by its waiters in their order. */
export function ls(args: readonly string[]): Promise<number> {
  return open('ls', 'PREFIX', args, async ({ argument: prefix, locks, output }) => {
    const records: LeaseRecord[] = []
    for await (const record of locks.list(prefix)) records.push(record)
    const nothing = prefix ? `nothing is held whose name begins with ${prefix}` : 'nothing is held'
    output.print(records, records.length > 0 ? table(records) : nothing)
    return 0
  })
}

function table(records: readonly LeaseRecord[]): string {
  const rows = [TITLES, ...records.map(row)]
  const widths = TITLES.map((_, column) => Math.max(...rows.map(cells => (cells[column] as string).length)))
  const lines = rows.map(cells =>
    cells
      .map((cell, column) => cell.padEnd(widths[column] as number))
      .join('  ')
      .trimEnd(),
  )
  return lines.map((line, i) => (i === 0 ? paint('bold', line) : line)).join('\n')
}

function row({ name, state, owner, token, remaining, note, position = 0 }: LeaseRecord): string[] {
  if (state === 'held') return [name, 'held', owner, `${token}`, formatDuration(remaining), note]
  return [`  ${name}`, position === 0 ? 'next' : `waiting ${position + 1}`, owner, '', formatDuration(remaining), note]
}

import type { LeaseRecord } from '../../index.ts'
import { formatDuration } from '../duration.ts'
import { query } from './query.ts'
import { table } from './table.ts'

const TITLES = ['NAME', 'STATE', 'OWNER', 'TOKEN', 'REMAINING', 'NOTE']

/** `holdfast ls`: every holder, each followed by its waiters in their order. */
export function ls(args: readonly string[]): Promise<number> {
  return query('ls', 'PREFIX', args, async ({ argument: prefix, locks, output }) => {
    const records: LeaseRecord[] = []
    for await (const record of locks.list(prefix)) records.push(record)
    const nothing = prefix ? `nothing is held whose name begins with ${prefix}` : 'nothing is held'
    output.print(records, records.length > 0 ? table(TITLES, records.map(row)) : nothing)
    return 0
  })
}

function row({ name, state, owner, token, remaining, note, position = 0 }: LeaseRecord): string[] {
  if (state === 'held') return [name, 'held', owner, `${token}`, formatDuration(remaining), note]
  return [`  ${name}`, position === 0 ? 'next' : `waiting ${position + 1}`, owner, '', formatDuration(remaining), note]
}

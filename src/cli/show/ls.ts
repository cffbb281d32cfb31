import type { LeaseRecord } from '../../index.ts'
import { formatDuration } from '../duration.ts'
import { query } from './query.ts'
import { table } from './table.ts'

const TITLES = ['NAME', 'STATE', 'OWNER', 'TOKEN', 'REMAINING', 'NOTE']

/** `holdfast ls`: lists each holder, followed by its waiters in queue order. */
export function ls(args: readonly string[]): Promise<number> {
  return query('ls', 'PREFIX', args, async ({ argument: prefix, locks, output }) => {
    const records: LeaseRecord[] = []
    for await (const record of locks.list(prefix)) records.push(record)
    const empty = prefix ? `no name that begins with ${prefix} is held` : 'no name is held'
    output.print(records, records.length > 0 ? table(TITLES, records.map(row)) : empty)
    return 0
  })
}

function row({ name, state, owner, token, remaining, note, position = 0 }: LeaseRecord): string[] {
  if (state === 'held') return [name, 'held', owner, `${token}`, formatDuration(remaining), note]
  return [`  ${name}`, position === 0 ? 'next' : `waiting ${position + 1}`, owner, '', formatDuration(remaining), note]
}

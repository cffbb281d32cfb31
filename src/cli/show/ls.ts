import { partOf, titleOf } from '../../contract/reserved.ts'
import type { LeaseRecord } from '../../index.ts'
import { formatDuration } from '../duration.ts'
import { bySlot } from './by-slot.ts'
import { query } from './query.ts'
import { table } from './table.ts'
import { watch } from './watch.ts'

const TITLES = ['NAME', 'STATE', 'OWNER', 'TOKEN', 'REMAINING', 'NOTE']

/** `holdfast ls`: lists each holder, followed by its waiters in queue order. The slots of a shared name are together. */
export function ls(args: readonly string[]): Promise<number> {
  const answer: Parameters<typeof query>[3] = async asked => {
    const { argument: prefix, locks, output, values } = asked
    if (values.watch === true) {
      await watch(asked)
      return 0
    }
    const records = await Array.fromAsync(locks.list(prefix))
    const empty = prefix ? `no name that begins with ${prefix} is held` : 'no name is held'
    const rows = [...Map.groupBy(records, ({ name }) => partOf(name).name).values()].flatMap(bySlot).map(row)
    output.print(records, rows.length > 0 ? table(TITLES, rows) : empty)
    return 0
  }
  return query('ls', 'PREFIX', args, answer, { watch: { type: 'boolean' } })
}

function row({ name, state, owner, token, remaining, note, position = 0 }: LeaseRecord): string[] {
  if (state === 'held') return [titleOf(name), 'held', owner, `${token}`, formatDuration(remaining), note]
  return [
    `  ${titleOf(name)}`,
    position === 0 ? 'next' : `waiting ${position + 1}`,
    owner,
    '',
    formatDuration(remaining),
    note,
  ]
}

import { isShared, slotsText, useOf, wantOf } from '../../contract/record.ts'
import { isMarker, titleOf } from '../../contract/reserved.ts'
import type { LeaseRecord } from '../../index.ts'
import { formatDuration } from '../duration.ts'
import { query } from './query.ts'
import { table } from './table.ts'
import { watch } from './watch.ts'

const TITLES = ['NAME', 'STATE', 'OWNER', 'TOKEN', 'REMAINING', 'NOTE']

/** `holdfast ls`: lists each name with its holder, or with the holders that share it, followed by its waiters in order. */
export function ls(args: readonly string[]): Promise<number> {
  const answer: Parameters<typeof query>[3] = async asked => {
    const { argument: prefix, locks, output, values } = asked
    if (values.watch === true) {
      await watch(asked)
      return 0
    }
    const records = await Array.fromAsync(locks.list(prefix))
    const empty = prefix ? `no name that begins with ${prefix} is held` : 'no name is held'
    const rows = [...Map.groupBy(records, ({ name }) => name).values()].flatMap(rowsOf)
    output.print(records, rows.length > 0 ? table(TITLES, rows) : empty)
    return 0
  }
  return query('ls', 'PREFIX', args, answer, { watch: { type: 'boolean' } })
}

/** Of one name. */
function rowsOf(records: readonly LeaseRecord[]): string[][] {
  const holders = records.filter(({ state }) => state === 'held')
  const waiters = records
    .filter(({ state }) => state === 'waiting')
    .map(waiter => waiterRow(waiter, wantOf(waiter, records)))
  const title = titleOf(records[0]?.name ?? '')
  if (!isShared(holders)) return [...holders.map(holder => holderRow(title, holder)), ...waiters]
  const slots = holders.map(holder => holderRow(`  ${slotsText(holder.slots)}`, holder))
  return [[title, useOf(holders), '', '', '', ''], ...slots, ...waiters]
}

function holderRow(title: string, { name, owner, token, remaining, note }: LeaseRecord): string[] {
  return [title, isMarker(name) ? 'ran' : 'held', owner, `${token}`, formatDuration(remaining), note]
}

function waiterRow({ name, owner, remaining, note, position = 0 }: LeaseRecord, want: string): string[] {
  const place = `${position === 0 ? 'next' : `waiting ${position + 1}`}${want && `, ${want}`}`
  return [`  ${titleOf(name)}`, place, owner, '', formatDuration(remaining), note]
}

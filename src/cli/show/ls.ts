import { isShared, slotsText, useOf, wantOf } from '../../contract/record.ts'
import { titleOf } from '../../contract/reserved.ts'
import { span } from '../../dashboard/span.ts'
import type { LeaseRecord } from '../../index.ts'
import { query } from './query.ts'
import { type Shown, shown } from './ran.ts'
import { type Column, table, terminalWidth } from './table.ts'
import { watch } from './watch.ts'

const COLUMNS: readonly Column[] = [
  { title: 'NAME', rank: 0, least: 12, share: 0.4 },
  { title: 'STATE', rank: 1, least: 10 },
  { title: 'OWNER', rank: 3, least: 12 },
  { title: 'TOKEN', rank: 5, from: 160, isNumber: true },
  { title: 'REMAINING', rank: 2, isNumber: true },
  { title: 'NOTE', rank: 4, least: 12, cut: 'end' },
]

/** `holdfast ls`: lists each name with its holders, its waiters in order, and its last run. */
export function ls(args: readonly string[]): Promise<number> {
  const answer: Parameters<typeof query>[3] = async asked => {
    const { argument: prefix, locks, output, values } = asked
    if (values.watch === true) {
      await watch(asked)
      return 0
    }
    const records = await Array.fromAsync(locks.list(prefix), shown)
    const empty = prefix ? `no name that begins with ${titleOf(prefix)} is held` : 'no name is held'
    const rows = [...Map.groupBy(records, ({ name }) => name).values()].flatMap(rowsOf)
    output.print(records, rows.length > 0 ? table(COLUMNS, rows, terminalWidth()) : empty)
    return 0
  }
  return query('ls', 'PREFIX', args, answer, { watch: { type: 'boolean' } })
}

/** The rows of one name. */
function rowsOf(records: readonly Shown[]): string[][] {
  const leases = records.filter((record): record is LeaseRecord => record.state !== 'ran')
  const holders = leases.filter(({ state }) => state === 'held')
  const others = [
    ...leases.filter(({ state }) => state === 'waiting').map(waiter => waiterRow(waiter, wantOf(waiter, leases))),
    ...records.filter(({ state }) => state === 'ran').map(run => holderRow(titleOf(run.name), run)),
  ]
  const title = titleOf(records[0]?.name ?? '')
  if (!isShared(holders)) return [...holders.map(holder => holderRow(title, holder)), ...others]
  const slots = holders.map(holder => holderRow(`  ${slotsText(holder.slots)}`, holder))
  return [[title, useOf(holders), '', '', '', ''], ...slots, ...others]
}

function holderRow(title: string, { state, owner, token, remaining, note }: Shown): string[] {
  return [title, state, owner, `${token}`, span(remaining), state === 'ran' ? '' : note]
}

/** The row of a waiter. It does not say how long it has waited: only a program that saw it come, such as `top`, knows. */
function waiterRow({ name, owner, note, position = 0 }: LeaseRecord, want: string): string[] {
  const place = `${position === 0 ? 'next' : `waiting ${position + 1}`}${want && `, ${want}`}`
  return [`  ${titleOf(name)}`, place, owner, '', '', note]
}

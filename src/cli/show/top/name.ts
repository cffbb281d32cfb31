import { isSlotOf } from '../../../contract/reserved.ts'
import { span } from '../../../dashboard/span.ts'
import { title } from '../title.ts'
import { ageOf, bar } from './columns.ts'
import type { State } from './state.ts'
import type { Line } from './text.ts'

/** The screen of one name: its holder, its queue, its slots, its nodes, and the holders before. */
export function nameLines(state: State, { nodes }: { readonly nodes: readonly string[] }, space: number): Line[] {
  const row = state.openedRow
  const name = state.opened ?? ''
  const time = (at: number): string => new Date(at).toTimeString().slice(0, 8)
  if (!row) return [[[title(name), 'bold']], [['It is free, and nobody waits.']]]
  const { held, troubles, waiters, holds } = row
  const slots = state.all.filter(each => isSlotOf(each.name, name))
  const facts: readonly (readonly [string, string])[] = held
    ? [
        ['Held by', held.owner],
        ['Held for', ageOf(row)],
        ['Left', `${bar(held.remaining, held.most)} ${span(held.remaining)}, unless renewed`],
        ['Token', held.token],
        ['Note', held.note || 'none'],
      ]
    : [['Holder', 'none']]
  const at = state.look?.at ?? 0
  const sections: Line[] = [
    [[row.title, 'bold']],
    ...troubles.map((text): Line => [[`! ${text}`, 'bad']]),
    ...facts.map(([fact, value]): Line => [[fact.padEnd(10), 'dim'], [value]]),
    ...section(
      'Slots',
      slots.map(slot => `${slot.title}: ${slot.held?.owner ?? 'free'}`),
    ),
    ...section('Nodes', nodes),
    ...section(
      'Queue',
      waiters.map(
        ({ owner, note, since }, index) =>
          `${index + 1}  ${owner}, waits for at least ${span(at - since)}${note && `, ${note}`}`,
      ),
      'Nobody waits',
    ),
    ...section(
      'Holders that were seen',
      holds.map(({ owner, token, from, to }) => `${time(from)} to ${time(to)}  ${owner}, token ${token}`),
    ),
  ]
  if (sections.length <= space) return sections
  return [...sections.slice(0, space - 1), [[`… ${sections.length - space + 1} more lines`, 'dim']]]
}

function section(title: string, lines: readonly string[], empty?: string): Line[] {
  if (lines.length === 0 && empty === undefined) return []
  const all = lines.length > 0 ? lines : [empty ?? '']
  return [[], [[title, 'bold']], ...all.map((line): Line => [[`  ${line}`]])]
}

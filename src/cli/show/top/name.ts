import { isMarker, titleOf } from '../../../contract/reserved.ts'
import { span } from '../../../dashboard/span.ts'
import { printable } from '../../output.ts'
import { lineOf, widthsOf } from '../table.ts'
import { type Line, type Run, wrapped } from '../text.ts'
import { ageOf } from './columns.ts'
import type { Row } from './rows.ts'
import type { State, Surroundings } from './state.ts'

/** The width of the bar of the remaining time, in cells. */
const BAR = 8

/** The width of a value's label, in columns. */
const FACT = 12

/** The titles of the columns that have numbers. */
const NUMBERS: ReadonlySet<string> = new Set(['#', 'HELD', 'RENEW BY', 'WAITED', 'FOR', 'TOKEN'])

/** The screen of one name: its holder, its queue, its slots, its nodes, and the holders before. Nothing is cut. */
export function nameLines(
  state: State,
  { columns, nodes }: Pick<Surroundings, 'columns' | 'nodes'>,
  space: number,
): Line[] {
  const row = state.openedRow
  const name = state.opened ?? ''
  const time = (at: number): string => new Date(at).toTimeString().slice(0, 8)
  if (!row) return [[[titleOf(name), 'bold']], [[unseen(state)]]]
  const { troubles, waiters, holders, past } = row
  const at = state.look?.at ?? 0
  const parts: Line[] = [
    [[row.title, 'bold']],
    ...troubles.map((text): Line => [[`! ${text}`, 'bad']]),
    ...factsOf(row).map(([fact, value]): Line => [[fact.padEnd(FACT), 'dim'], [value]]),
    ...section(
      'Holders',
      grid(
        ['SLOT', 'HOLDER', 'HELD', 'RENEW BY', 'TOKEN', 'NOTE'],
        holders.map(each => [each.slots.join(), each.owner, ageOf(each), span(each.remaining), each.token, each.note]),
      ),
    ),
    ...section(
      'Nodes',
      nodes.map((node): Run => [node]),
    ),
    ...section(
      'Queue',
      grid(
        ['#', 'WAITER', 'WAITED', 'WANTS', 'NOTE'],
        waiters.map(({ owner, note, want, since }, index) => [
          ...[`${index + 1}`, owner, `≥ ${span(at - since)}`, want, note],
        ]),
      ),
      'Nobody waits',
    ),
    ...section(
      'Earlier leases',
      grid(
        ['FROM', 'TO', 'FOR', 'SLOT', 'HOLDER', 'TOKEN'],
        past.map(hold => [
          ...[`${hold.isSinceGrant ? '' : '≤ '}${time(hold.since)}`, time(hold.seen), ageOf(hold)],
          ...[hold.limit > 1 ? hold.slots.join() : '', hold.owner, hold.token],
        ]),
      ),
    ),
  ]
  const sections = parts.flatMap(line => wholeOf(line, columns))
  if (sections.length <= space) return sections
  return [...sections.slice(0, space - 1), [[`… ${sections.length - space + 1} more lines`, 'dim']]]
}

function factsOf({ name, held, holders, waiters }: Row): readonly (readonly [string, string])[] {
  if (!held) return [['Holder', 'none']]
  if (holders.length > 0)
    return [
      ['Held', held.owner],
      ['Waiters', `${waiters.length}`],
    ]
  return [
    ...(isMarker(name)
      ? ([
          ['Ran by', held.owner],
          ['Started', `${ageOf(held)} ago`],
          ['Counts for', `another ${span(held.remaining)}`],
        ] as const)
      : ([
          ['Held by', held.owner],
          ['Held for', ageOf(held)],
          ['Renew by', `${bar(held.remaining, held.most)} ${span(held.remaining)}`],
        ] as const)),
    ['Token', held.token],
    ['Note', held.note || 'none'],
  ]
}

/** Makes a table that is as wide as its cells. Its titles come first. */
function grid(titles: readonly string[], rows: readonly (readonly string[])[]): Run[] {
  const columns = titles.map((title, rank) => ({ title, rank, isNumber: NUMBERS.has(title) }))
  const widths = widthsOf(
    columns,
    rows.map(cells => cells.map(printable)),
  )
  const [head, ...lines] = [titles, ...rows].map(cells => lineOf(columns, widths, cells.map(printable)))
  return rows.length === 0 ? [] : [[head ?? '', 'dim'], ...lines.map((line): Run => [line])]
}

/** The text about a name that the look did not show. */
function unseen({ look }: State): string {
  if (look?.isPartial) return 'It is not known whether it is held: only some names are read.'
  return `${look?.failure === undefined ? 'It is' : 'When it was last seen, it was'} free, and nobody waits.`
}

/** Draws the share of the ttl that remains. */
function bar(remaining: number, most: number): string {
  const full = most > 0 ? Math.ceil(Math.max(0, Math.min(remaining / most, 1)) * BAR) : 0
  return '━'.repeat(full) + '╌'.repeat(BAR - full)
}

function section(title: string, lines: readonly Run[], empty?: string): Line[] {
  if (lines.length === 0 && empty === undefined) return []
  const all: readonly Run[] = lines.length > 0 ? lines : [[empty ?? '']]
  return [[], [[title, 'bold']], ...all.map(([text, style = 'plain']): Line => [[`  ${text}`, style]])]
}

/** Continues the last part of the line in further lines, aligned with its start. */
function wholeOf(line: Line, columns: number): Line[] {
  const [text, style = 'plain'] = line.at(-1) ?? ['']
  const before = line.slice(0, -1)
  const indent = before.length * FACT
  const parts = wrapped(printable(text), Math.max(1, columns - indent))
  return parts.map((part, index) => [...(index === 0 ? before : [[' '.repeat(indent)] as const]), [part, style]])
}

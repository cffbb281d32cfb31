import { isMarker } from '../../../contract/reserved.ts'
import { span } from '../../../dashboard/span.ts'
import { printable } from '../../output.ts'
import type { Row } from './rows.ts'
import { widthOf } from './text.ts'

/** A column of the list. */
export interface Column {
  readonly title: string
  readonly width: number
  cell(row: Row, width: number): string
}

interface Plan {
  readonly title: string
  readonly least: number
  readonly most: number
  readonly cell: (row: Row, width: number) => string
}

/** Cells of the bar of the time left. */
const BAR = 8

/** In the order of the screen. */
const PLANS = {
  name: { title: 'NAME', least: 12, most: 48, cell: ({ title }) => title },
  holder: { title: 'HOLDER', least: 8, most: 32, cell: ({ held }) => held?.owner ?? 'free' },
  age: {
    title: 'HELD',
    least: 9,
    most: 9,
    cell: ({ name, held }) => (!held ? '' : isMarker(name) ? 'ran' : ageOf(held)),
  },
  left: {
    title: 'LEFT',
    least: 7,
    most: BAR + 8,
    cell: ({ held }, width) =>
      held ? `${width < BAR + 6 ? '' : `${bar(held.remaining, held.most)} `}${span(held.remaining)}` : '',
  },
  waiting: {
    title: 'WAITING',
    least: 10,
    most: 10,
    cell: ({ waiters, waited }) => (waited === undefined ? '' : `${waiters.length}, ${span(waited)}`),
  },
  token: { title: 'TOKEN', least: 16, most: 20, cell: ({ held }) => held?.token ?? '' },
  note: { title: 'NOTE', least: 8, most: 200, cell: ({ held }) => held?.note ?? '' },
} satisfies Record<string, Plan>

/** Those that come first when the screen has no space for all. */
const ORDER: readonly (keyof typeof PLANS)[] = ['name', 'left', 'holder', 'waiting', 'age', 'note', 'token']

/** The columns that fit into this width, as wide as these rows need. */
export function chosenColumns(rows: readonly Row[], width: number): Column[] {
  const widths = new Map<keyof typeof PLANS, number>()
  let left = width + 2
  for (const key of ORDER) {
    const { least } = PLANS[key]
    if (left < least + 2) break
    widths.set(key, least)
    left -= least + 2
  }
  for (const key of widths.keys()) {
    const { least, most, cell, title } = PLANS[key]
    const needed = Math.max(title.length, ...rows.map(row => widthOf(printable(cell(row, most)))))
    const more = Math.max(0, Math.min(left, Math.min(needed, most) - least))
    widths.set(key, least + more)
    left -= more
  }
  return (Object.keys(PLANS) as (keyof typeof PLANS)[]).flatMap(key => {
    const { title, cell } = PLANS[key]
    const given = widths.get(key)
    return given === undefined ? [] : [{ title, cell, width: given }]
  })
}

/** How long the name is held. */
export function ageOf({ isSinceGrant, age }: NonNullable<Row['held']>): string {
  return `${isSinceGrant ? '' : '> '}${span(age)}`
}

/** The share of the ttl that is left. */
export function bar(remaining: number, most: number): string {
  const full = most > 0 ? Math.ceil(Math.max(0, Math.min(remaining / most, 1)) * BAR) : 0
  return '━'.repeat(full) + '╌'.repeat(BAR - full)
}

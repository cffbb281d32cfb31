import { isMarker } from '../../../contract/reserved.ts'
import { span } from '../../../dashboard/span.ts'
import { printable } from '../../output.ts'
import type { Column } from '../table.ts'
import type { Row } from './rows.ts'

/** The columns of the list, in the order of the screen. */
export const COLUMNS: readonly Column[] = [
  { title: 'NAME', rank: 0, least: 12, share: 0.4 },
  { title: 'HOLDER', rank: 2, least: 12 },
  { title: 'HELD', rank: 5, isNumber: true },
  { title: 'RENEW BY', rank: 1, isNumber: true },
  { title: 'WAITERS', rank: 3, isNumber: true },
  { title: 'LONGEST', rank: 4, isNumber: true },
  { title: 'TOKEN', rank: 7, from: 160, isNumber: true },
  { title: 'NOTE', rank: 6, least: 20, cut: 'end' },
]

/** The texts of a row in these columns. */
export function cellsOf({ name, title, held, waiters, waited }: Row): string[] {
  const isRun = isMarker(name)
  return [
    title,
    held?.owner ?? 'free',
    held ? (isRun ? 'ran' : ageOf(held)) : '',
    held && !isRun ? span(held.remaining) : '',
    waiters.length > 0 ? `${waiters.length}` : '',
    waited === undefined ? '' : `≥ ${span(waited)}`,
    held?.token ?? '',
    held && !isRun ? held.note : '',
  ].map(printable)
}

/** The text that says how long the name has been held. */
export function ageOf({ isSinceGrant, age }: Pick<NonNullable<Row['held']>, 'isSinceGrant' | 'age'>): string {
  return `${isSinceGrant ? '' : '≥ '}${span(age)}`
}

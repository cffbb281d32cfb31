import { slotsText } from '../contract/record.ts'
import { titleOf } from '../contract/reserved.ts'
import type { Sign } from './signs.ts'
import { span } from './span.ts'

/** The kinds of signs, the worst first. */
const KINDS: readonly Sign['kind'][] = ['not renewed', 'long', 'note']

const collator = new Intl.Collator('en', { numeric: true })

/** The order of titles for people: `job-9` is before `job-10`. */
export const byTitle = (a: string, b: string): number => collator.compare(a, b)

/** What is wrong with one name, or with all names that one process does not renew. */
export interface Trouble {
  readonly kind: Sign['kind']
  /** The owner that the process uses. */
  readonly owner: string
  /** The names in the order for people. */
  readonly names: readonly string[]
  /** The text for people: what is wrong with the name, or what the owner does not do. */
  readonly text: string
  /** For several leases, a text that says when the first one ends. Otherwise empty. */
  readonly end: string
}

/** The signs of all names, the worst first. A process that does not renew several names is one trouble. */
export function troublesOf(signs: ReadonlyMap<string, readonly Sign[]>): readonly Trouble[] {
  const all = [...signs].flatMap(([name, ofName]) => ofName.map(sign => ({ name, sign })))
  const [silent, others] = [true, false].map(is => all.filter(({ sign }) => (sign.kind === 'not renewed') === is))
  return [
    ...[...Map.groupBy(silent ?? [], ({ sign }) => sign.hold.owner).values()].map(together),
    ...(others ?? []).map(each => together([each])),
  ].sort(
    (a, b) =>
      KINDS.indexOf(a.kind) - KINDS.indexOf(b.kind) ||
      b.names.length - a.names.length ||
      byName(a.names[0] ?? '', b.names[0] ?? ''),
  )
}

function together(all: readonly { readonly name: string; readonly sign: Sign }[]): Trouble {
  const signs = all.map(({ sign }) => sign)
  const names = [...new Set(all.map(({ name }) => name))].sort(byName)
  const { kind = 'long', hold: { owner = '' } = {}, text = '' } = signs[0] ?? {}
  const trouble = { kind, owner, names }
  if (signs.length < 2) return { ...trouble, text, end: '' }
  const silence = span(Math.min(...signs.map(({ hold }) => hold.most - hold.remaining)))
  const end = `The first ends in ${span(Math.min(...signs.map(({ hold }) => hold.remaining)))}`
  const slots = slotsText(signs.flatMap(({ hold }) => hold.slots).sort((a, b) => a - b))
  return names.length === 1
    ? { ...trouble, text: `Not renewed for ${silence} (${slots})`, end }
    : { ...trouble, text: `${owner} has not renewed ${names.length} names for ${silence}`, end }
}

function byName(a: string, b: string): number {
  return byTitle(titleOf(a), titleOf(b))
}

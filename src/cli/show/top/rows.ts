import { slotsText } from '../../../contract/record.ts'
import { titleOf } from '../../../contract/reserved.ts'
import type { Hold } from '../../../dashboard/hold.ts'
import type { Held, SeenWaiter, Sight } from '../../../dashboard/sight.ts'
import type { Look } from '../../../dashboard/survey.ts'
import { byTitle, type Trouble } from '../../../dashboard/troubles.ts'

/** Milliseconds for which a change of the holder counts as trouble. */
const RECENT = 60_000

/** A name on the list, as one look showed it. */
export interface Row {
  readonly name: string
  /** The name as people read it. */
  readonly title: string
  /** The lease of its holder, or of all holders of a shared name together. `undefined`: it is free. */
  readonly held: Held | undefined
  /** The holders of a shared name. */
  readonly holders: readonly SlotHeld[]
  /** Texts that say why its holder may be stuck, or that the holder has just changed. */
  readonly troubles: readonly string[]
  /** The waiters in the order of the store. */
  readonly waiters: readonly SeenWaiter[]
  /** The least time in milliseconds for which the oldest waiter has waited. */
  readonly waited: number | undefined
  /** Its leases that have ended, the newest first. */
  readonly past: readonly Hold[]
  /** The sort key of the row. The highest comes first. */
  readonly rank: readonly [trouble: number, changedAt: number, waited: number, held: number]
}

/** One holder of a shared name. */
export interface SlotHeld extends Held {
  /** The slots as text, such as `slot 3`. */
  readonly title: string
  readonly slots: readonly number[]
}

/**
 * All names of a look, those with the most trouble first: holders that may be stuck, then names that were just taken
 * over, then the oldest wait. A lease with little time left was not renewed as before, so it is among the first. All other
 * names are in the order of their names, which keeps rows in place.
 */
export function rowsOf(look: Look, troubles: readonly Trouble[]): Row[] {
  const places = new Map<string, number>()
  for (const [index, { names }] of troubles.entries())
    for (const name of names) if (!places.has(name)) places.set(name, index - troubles.length)
  const changes = new Map<string, Look['changes'][number]>()
  for (const change of look.changes)
    if (change.isTakeover && look.at - change.at < RECENT && !changes.has(change.name)) changes.set(change.name, change)
  return [...look.sights.values()]
    .map(sight => rowOf(look, sight, changes.get(sight.name), places.get(sight.name) ?? 0))
    .sort(byRank)
}

/** The rows whose title, owner or note contains the text. */
export function filtered(rows: readonly Row[], text: string): readonly Row[] {
  const wanted = text.toLowerCase()
  const matches = ({ title, held, holders }: Row): boolean =>
    [title, held, ...holders]
      .flatMap(each => (typeof each === 'object' ? [each.owner, each.note] : [each]))
      .some(each => each?.toLowerCase().includes(wanted))
  return wanted === '' ? rows : rows.filter(matches)
}

function rowOf(look: Look, sight: Sight, change: Look['changes'][number] | undefined, place: number): Row {
  const { name, holds, past, waiters } = sight
  const signs = (look.signs.get(name) ?? []).map(({ text }) => text)
  const waited = waiters.length > 0 ? look.at - sight.waitedSince : undefined
  return {
    name,
    title: titleOf(name),
    held: sight.held,
    holders: sight.isShared ? holds.map(slotOf) : [],
    troubles: [...signs, ...(change ? [`${change.to ? 'Taken over from' : 'Lost by'} ${change.from}`] : [])],
    waiters,
    waited,
    past,
    rank: [-place, change?.at ?? 0, waited ?? -1, holds.length > 0 ? 1 : 0],
  }
}

function slotOf({ owner, token, note, age, isSinceGrant, remaining, most, slots }: Hold): SlotHeld {
  return { owner, token, note, age, isSinceGrant, remaining, most, title: slotsText(slots), slots }
}

function byRank(a: Row, b: Row): number {
  const index = a.rank.findIndex((value, at) => value !== b.rank[at])
  return index < 0 ? byTitle(a.title, b.title) : (b.rank[index] ?? 0) - (a.rank[index] ?? 0)
}

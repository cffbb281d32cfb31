import { positionLifetime } from './name.ts'
import type { Waiter } from './state.ts'

/** The changes that a store must write of a list whose entries have ids. */
export interface Difference<Entry> {
  /** The entries to delete, before anything is added. */
  readonly ended: readonly Entry[]
  /** The entries to append, in order. */
  readonly added: readonly Entry[]
  /** The entries to replace in their positions. */
  readonly changed: readonly Entry[]
}

/** The difference between two versions of a list. An entry that has moved to the end counts as ended and added again. */
export function difference<Entry extends { readonly id: string }>(
  before: readonly Entry[],
  after: readonly Entry[],
): Difference<Entry> {
  let next = 0
  while (next < before.length && before[next] === after[next]) next += 1 // usually these are all entries
  const places = new Map<string, number>()
  for (let place = next; place < before.length; place += 1) places.set(before[place]?.id ?? '', place)
  const added: Entry[] = []
  const changed: Entry[] = []
  for (const entry of after.slice(next)) {
    const place = places.get(entry.id) ?? -1
    if (place < next || added.length > 0) {
      added.push(entry)
      continue
    }
    places.delete(entry.id)
    next = place + 1
    if (before[place] !== entry) changed.push(entry)
  }
  return { ended: before.filter(({ id }) => places.has(id)), added, changed }
}

/**
 * Was a position written recently enough to need no write? It is written again when a quarter of its lifetime has passed: a
 * waiter asks after a third, or when it is woken.
 */
export function isFresh(before: Waiter, after: Waiter, now: number): boolean {
  const lifetime = positionLifetime(after.ttl)
  const left = before.lapses - now
  return before.isPassed === after.isPassed && left > 0.75 * lifetime && left <= lifetime + 1
}

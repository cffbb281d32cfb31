import { positionLifetime } from './name.ts'
import type { Waiter } from './state.ts'

/** What a store has to write of a list whose entries are found by their ids. */
export interface Difference<Entry> {
  /** To delete, first. */
  readonly ended: readonly Entry[]
  /** To append, in order. */
  readonly added: readonly Entry[]
  /** To replace where they stand. */
  readonly changed: readonly Entry[]
}

/** How a list came to be another one. An entry that has moved to the end was ended, and added again. */
export function difference<Entry extends { readonly id: string }>(
  before: readonly Entry[],
  after: readonly Entry[],
): Difference<Entry> {
  let next = 0
  while (next < before.length && before[next] === after[next]) next += 1 // mostly all of them
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
 * Need a position not be written, because it was written lately? It is written again when a quarter of its lifetime is over: a
 * waiter asks after a third, or when it is woken.
 */
export function isFresh(before: Waiter, after: Waiter, now: number): boolean {
  const lifetime = positionLifetime(after.ttl)
  const left = before.lapses - now
  return before.isPassed === after.isPassed && left > 0.75 * lifetime && left <= lifetime + 1
}

import { slotsText } from '../contract/record.ts'
import { isMarker, titleOf } from '../contract/reserved.ts'
import type { Hold } from './hold.ts'
import { span } from './span.ts'

/** A sign that a holder may be stuck. It is a guess: no store sees whether work makes progress. */
export interface Sign {
  /** The lease is no longer renewed, is held far longer than others of its kind, or its note no longer changes. */
  readonly kind: 'not renewed' | 'long' | 'note'
  /** The text for people. */
  readonly text: string
  readonly hold: Hold
}

/** A lease is long if it lasts this many times longer than nine of ten others. */
const FAR = 5

/** Milliseconds. A lease that is held for a shorter time is never long. */
const SHORTEST = 10_000

/** The fewest leases of a kind that show a usual duration. */
const ENOUGH = 5

/** The number of ended leases of a kind that are remembered, and the number of kinds. */
const KEPT = 100
const KEPT_KINDS = 1_000

/** Learns how long leases of each kind last. Names of one kind differ in numbers only: `invoices-7`, `invoices-8`. */
export class Kinds {
  readonly #ended = new Map<string, number[]>()

  /** Adds a lease that ended after it was held for `age` ms. */
  ended(name: string, age: number): void {
    const kind = kindOf(name)
    const ages = this.#ended.get(kind) ?? []
    this.#ended.delete(kind) // the kind that ended last becomes the last to be forgotten
    this.#ended.set(kind, [...ages.slice(1 - KEPT), age])
    const [oldest] = this.#ended.keys()
    if (this.#ended.size > KEPT_KINDS && oldest !== undefined) this.#ended.delete(oldest)
  }

  /** The signs of these leases, by name. Ended leases of a kind show what is usual, or held ones if too few ended. */
  signs(sights: Iterable<Holds>): ReadonlyMap<string, readonly Sign[]> {
    const all = [...sights]
    const present = new Map<string, number[]>()
    for (const { name, holds } of all) {
      const kind = kindOf(name)
      const ages = present.get(kind) ?? []
      for (const { age } of holds) ages.push(age)
      present.set(kind, ages)
    }
    const usual = new Map<string, number | undefined>()
    for (const [kind, ages] of present) usual.set(kind, mostOf(this.#ended.get(kind) ?? []) ?? mostOf(ages))
    const found = new Map<string, readonly Sign[]>()
    for (const { name, holds } of all) {
      const often = usual.get(kindOf(name))
      const signs = holds.flatMap(hold =>
        [notRenewed(name, hold), sameNote(hold), long(name, hold, often)]
          .filter(sign => sign !== undefined)
          .map(sign => (hold.limit === 1 ? sign : { ...sign, text: `${sign.text} (${slotsText(hold.slots)})` })),
      )
      if (signs.length > 0) found.set(name, signs)
    }
    return found
  }
}

/** The leases on a name. */
interface Holds {
  readonly name: string
  readonly holds: readonly Hold[]
}

/**
 * UUIDs with hyphens; as words of their own, UUIDs without hyphens and ULIDs, which are 26 characters of Crockford's base 32;
 * and numbers.
 */
const IDS =
  /[\da-f]{8}(-[\da-f]{4}){3}-[\da-f]{12}|(?<![\p{L}\d])([\da-f]{32}|[0-7][\da-hjkmnp-tv-z]{25})(?![\p{L}\d])|\d+/giu

/** The kind of a name: the name with `#` in place of numbers, UUIDs and ULIDs. */
export function kindOf(name: string): string {
  return name.replaceAll(IDS, '#')
}

function notRenewed(name: string, hold: Hold): Sign | undefined {
  const { isOverdue, remaining, most } = hold
  if (!isOverdue || isMarker(name)) return undefined
  return { kind: 'not renewed', text: `Not renewed for ${span(most - remaining)}, ends in ${span(remaining)}`, hold }
}

function long(name: string, hold: Hold, usual: number | undefined): Sign | undefined {
  const { age, isSinceGrant } = hold
  if (usual === undefined || age < SHORTEST || age < FAR * usual || isMarker(name)) return undefined
  const held = `${isSinceGrant ? '' : 'at least '}${span(age)}`
  return { kind: 'long', text: `Held for ${held}, others of ${titleOf(kindOf(name))} for ${span(usual)} or less`, hold }
}

function sameNote(hold: Hold): Sign | undefined {
  const { noteIntervals, noteSince, seen } = hold
  const longest = Math.max(...noteIntervals)
  const same = seen - noteSince
  if (noteIntervals.length < 3 || same < SHORTEST || same < FAR * longest) return undefined
  return {
    kind: 'note',
    text: `Its note has not changed for ${span(same)}. Before, it changed at least every ${span(longest)}`,
    hold,
  }
}

/** The 90th percentile of these ages. `undefined`: there are too few. */
function mostOf(ages: readonly number[]): number | undefined {
  if (ages.length < ENOUGH) return undefined
  return ages.toSorted((a, b) => a - b)[Math.floor(0.9 * (ages.length - 1))]
}

import type { Claim } from '../../contract/store.ts'
import { gracePeriod } from '../../contract/time.ts'
import { type Asker, Name, positionLifetime, type Wakes } from '../rules/name.ts'
import { type Holder, UNUSED, type Waiter } from '../rules/state.ts'
import type { Keys } from './keys.ts'
import type { KeyValue, RangeAnswer } from './messages.ts'
import { askerOf, idOf, isPassed, limitOf, slotsOf } from './record.ts'

/** The number of waiters that one decision reads: one can be passed, and few were passed before. */
const FIRST = 12

/** The state of a name at a revision. */
export interface View {
  readonly holders: readonly KeyValue[]
  /** The waiters that were read, in the order of their positions. */
  readonly waiters: readonly KeyValue[]
  /** The number of waiters behind those. */
  readonly others: number
  readonly revision: bigint
  /** The time when capacity was last freed, as far as this process has seen it. Infinite: perhaps just now. */
  readonly changed: number
}

/** The claim holds these slots unless a key is created meanwhile. */
export interface Granted {
  readonly held: true
  readonly slots: readonly number[]
  readonly limit: number
  /** The waiter that the claim passes. */
  readonly passes: KeyValue | undefined
  /** Waiters ahead that were already passed. They count again once they ask. */
  readonly passed: readonly KeyValue[]
}

export interface Refused {
  readonly held: false
  readonly retryAfter: number
  readonly ahead: number
}

/**
 * Applies the rules of a name to a claim that does not hold. Holders hold while their keys exist, so the times when their
 * leases end are unknown here, and so is when a waiter last asked.
 */
export function decide(asker: Asker, view: View, now: number): Granted | Refused {
  const { others } = view
  const at = view.waiters.findIndex(found => idOf(found) === asker.id)
  const waiters = at < 0 ? view.waiters : view.waiters.slice(0, at + 1) // the rules ignore the waiters behind it
  const name = nameOf({ ...view, waiters }, now)
  const answer = name.acquire(asker)
  if (!answer.held) return { ...answer, ahead: answer.ahead + (at < 0 ? others : 0) }
  // The waiters that were not read count too.
  if (at < 0 && others > 0) return { held: false, retryAfter: positionLifetime(0), ahead: others }
  const left = new Map(name.state.waiters.map(waiter => [waiter.id, waiter]))
  const ahead = at < 0 ? waiters : waiters.slice(0, at)
  return {
    held: true,
    slots: answer.slots,
    limit: name.state.holders.find(({ id }) => id === asker.id)?.limit ?? 1,
    passes: ahead.find(found => !isPassed(found) && left.get(idOf(found))?.isPassed),
    passed: ahead.filter(isPassed),
  }
}

/** The waiters that should ask, and after how many milliseconds. */
export function wakesOf(view: View, now: number): Wakes {
  return nameOf(view, now).wakes(undefined, true)
}

export function asAsker({ id, owner, note, ttl, limit = 1, units = 1, roundTrip, queue }: Claim): Asker {
  return { id, owner, note, ttl, limit, units, grace: gracePeriod(roundTrip), queue }
}

/** Reads the holders and the first waiters. */
export function firstOf(keys: Keys, name: string): object[] {
  const sorted = { sort_order: 'ASCEND', sort_target: 'CREATE', limit: String(FIRST) }
  return [{ request_range: keys.holders(name) }, { request_range: { ...keys.queue(name), ...sorted } }]
}

/** The state of a name, from a read of its holders and waiters, or of the first waiters. */
export function viewOf(holders: Partial<RangeAnswer>, waiters: Partial<RangeAnswer>, revision: string): View {
  const { kvs: first = [], count = '0' } = waiters
  return {
    holders: holders.kvs ?? [],
    waiters: first.toSorted(byRevision),
    others: Math.max(Number(count) - first.length, 0),
    revision: BigInt(revision),
    changed: Number.POSITIVE_INFINITY,
  }
}

/** The state of a name, from a read of all its keys. */
export function wholeOf(keys: Keys, { kvs = [] }: Partial<RangeAnswer>, revision: string): View {
  const isHeld = ({ key }: KeyValue): boolean => keys.parse(key).isHeld
  return viewOf({ kvs: kvs.filter(isHeld) }, { kvs: kvs.filter(found => !isHeld(found)) }, revision)
}

/** Compares positions for sorting. */
export function byRevision(a: KeyValue, b: KeyValue): number {
  return BigInt(a.create_revision) < BigInt(b.create_revision) ? -1 : 1
}

/** The key with which the claim holds. */
export function heldBy(id: string, { holders }: Pick<View, 'holders'>): KeyValue | undefined {
  return holders.find(found => idOf(found) === id)
}

function nameOf({ holders, waiters, changed }: View, now: number): Name {
  const state = { holders: holders.map(asHolder), waiters: waiters.map(found => asWaiter(found, now)), changed }
  return new Name(now, { ...UNUSED, ...state })
}

function asHolder(found: KeyValue): Holder {
  const ends = { ttl: Number.POSITIVE_INFINITY, expires: Number.POSITIVE_INFINITY }
  return { id: idOf(found), owner: '', note: '', ...ends, limit: limitOf(found), token: 0, slots: slotsOf(found) }
}

function asWaiter(found: KeyValue, now: number): Waiter {
  const asker = askerOf(found)
  return { ...asker, lapses: now + positionLifetime(asker.ttl), isPassed: isPassed(found) }
}

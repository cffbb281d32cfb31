import { printable } from './printable.ts'
import { LONGEST_TEXT } from './reserved.ts'
import { LARGEST_LIMIT, type LeaseRecord, type NodeRecord } from './store.ts'

/** The holders of one name, its waiters, and the servers that decide. */
export interface NameState {
  readonly name: string
  /** The holders, those of the lowest slots first. At most one unless the name is shared. */
  readonly holders: readonly LeaseRecord[]
  /** The waiters in the order of the queue. Empty if the store has no queue. */
  readonly waiters: readonly LeaseRecord[]
  /** The servers of the store, if it is made of several. */
  readonly nodes?: readonly NodeRecord[]
}

/** The state of `name` from what `inspect` of a store shows. */
export function stateOf(name: string, records: readonly (LeaseRecord | NodeRecord)[]): NameState {
  const leases = records.filter(isLease)
  const nodes = records.filter(record => !isLease(record))
  return {
    name,
    holders: leases.filter(({ state }) => state === 'held'),
    waiters: leases.filter(({ state }) => state === 'waiting'),
    ...(nodes.length > 0 && { nodes }),
  }
}

/** Is the name shared, to judge by its holders? Then several can hold it at a time. */
export function isShared(holders: readonly Pick<LeaseRecord, 'limit'>[]): boolean {
  return holders.length > 1 || holders.some(({ limit = 1 }) => limit > 1)
}

/** The text that says how much of a shared name is held: `5 of 5`, by the smallest limit, or `7 readers`. */
export function useOf(holders: readonly Pick<LeaseRecord, 'limit' | 'slots'>[]): string {
  const used = holders.reduce((sum, { slots = [0] }) => sum + slots.length, 0)
  const least = holders.reduce((smallest, { limit = 1 }) => Math.min(smallest, limit), LARGEST_LIMIT)
  return least < LARGEST_LIMIT ? `${used} of ${least}` : `${used} ${used === 1 ? 'reader' : 'readers'}`
}

/** What a waiter for a shared name wants: `reader`, `writer` or `for 2 slots`. Empty for a plain lease. */
export function wantOf(
  { limit = 1, units = 1 }: Pick<LeaseRecord, 'limit' | 'units'>,
  ofName: readonly Pick<LeaseRecord, 'limit'>[],
): string {
  if (limit === LARGEST_LIMIT) return 'reader'
  if (units > 1) return `for ${units} slots`
  return limit === 1 && ofName.some(each => each.limit === LARGEST_LIMIT) ? 'writer' : ''
}

/** The text for some slots, such as `slot 3` or `slots 0-2, 5`. */
export function slotsText(slots: readonly number[] = [0]): string {
  const ranges: [first: number, last: number][] = []
  for (const slot of slots) {
    const range = ranges.at(-1)
    if (range && range[1] === slot - 1) range[1] = slot
    else ranges.push([slot, slot])
  }
  const text = ranges.map(([first, last]) => (first === last ? `${first}` : `${first}-${last}`)).join(', ')
  return `${slots.length === 1 ? 'slot' : 'slots'} ${text}`
}

/** Is this a lease or a waiter, and not a server? */
export function isLease(record: LeaseRecord | NodeRecord): record is LeaseRecord {
  return record.state === 'held' || record.state === 'waiting'
}

/**
 * The record as callers get it: in whole milliseconds, with printable texts that are no longer than this library
 * writes them, and with a `toJSON`, because JSON has no bigint.
 */
export function visible(record: LeaseRecord): LeaseRecord {
  const { owner, note, remaining } = record
  const shown = {
    ...record,
    owner: clipped(owner),
    note: clipped(note),
    remaining: Math.max(Math.round(remaining), 0),
  }
  return Object.defineProperty(shown, 'toJSON', { value: () => recordToJSON(shown) })
}

/** A record as JSON can carry it: the token as a decimal string, since it may exceed 2^53. */
export function recordToJSON(record: LeaseRecord): Record<string, unknown> {
  return { ...record, token: record.token?.toString() }
}

/** Clips a text and escapes its characters, because another program may have written any text. */
function clipped(written: string): string {
  const text = printable(written)
  if (Buffer.byteLength(text) <= LONGEST_TEXT) return text
  const start = Buffer.from(text).subarray(0, LONGEST_TEXT - Buffer.byteLength('…'))
  return `${start.toString().replace(/\ufffd$/, '')}…`
}

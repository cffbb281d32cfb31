import { printable } from './printable.ts'
import { LONGEST_TEXT } from './reserved.ts'
import type { LeaseRecord, NodeRecord } from './store.ts'

/** The holder of one name, its waiters, and the servers that decide. */
export interface NameState {
  readonly name: string
  readonly holder: LeaseRecord | undefined
  /** In order. Empty where the store has no queue. */
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
    holder: leases.find(({ state }) => state === 'held'),
    waiters: leases.filter(({ state }) => state === 'waiting'),
    ...(nodes.length > 0 && { nodes }),
  }
}

/** Is this a lease or a waiter, and not a server? */
export function isLease(record: LeaseRecord | NodeRecord): record is LeaseRecord {
  return record.state === 'held' || record.state === 'waiting'
}

/**
 * The record as callers get it: in whole milliseconds, with texts that are printable and no longer than this library
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

/** Another program may have written a longer text, and any characters. */
function clipped(written: string): string {
  const text = printable(written)
  if (Buffer.byteLength(text) <= LONGEST_TEXT) return text
  const start = Buffer.from(text).subarray(0, LONGEST_TEXT - Buffer.byteLength('…'))
  return `${start.toString().replace(/\ufffd$/, '')}…`
}

import type { LeaseRecord, NodeRecord } from './store.ts'

/** All about one name. */
export interface NameState {
  readonly name: string
  readonly holder: LeaseRecord | undefined
  /** In order; empty where the store keeps no line. */
  readonly waiters: readonly LeaseRecord[]
  /** The servers that decide about it, where they are several. */
  readonly nodes?: readonly NodeRecord[]
}

/** The state of `name` from the records of its holder and waiters. */
export function stateOf(name: string, records: readonly LeaseRecord[]): NameState {
  return {
    name,
    holder: records.find(record => record.state === 'held'),
    waiters: records.filter(record => record.state === 'waiting'),
  }
}

/** In bytes of UTF-8: the most that `checkText` accepts. */
const LONGEST_TEXT = 255

/**
 * The record as callers get it: in whole milliseconds, with texts no longer than this library writes them, and with a
 * `toJSON`, because JSON has no bigint.
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

/** Another program may have written more. */
function clipped(text: string): string {
  if (Buffer.byteLength(text) <= LONGEST_TEXT) return text
  const start = Buffer.from(text).subarray(0, LONGEST_TEXT - Buffer.byteLength('…'))
  return `${start.toString().replace(/\ufffd$/, '')}…`
}

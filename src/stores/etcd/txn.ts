import type { Claim } from '../../contract/store.ts'
import type { Keys } from './keys.ts'
import type { Header, KeyValue, TxnAnswer } from './messages.ts'
import { encode } from './record.ts'
import type { Spare } from './spares.ts'

/** How a claim finds its name. */
export interface Situation {
  readonly held: KeyValue | undefined
  /** Its own place in line. */
  readonly place: KeyValue | undefined
  /** How many are in line: all, or those before the revision that was asked about. */
  readonly line: number
  /** Was it withdrawn before? */
  readonly isGone: boolean
}

export interface Departure {
  readonly key: string
  readonly lease: string
  /** The id of the claim, or what else took it from the lease. */
  readonly left: string
}

/** What became of one of several transactions, and what its failure found. */
export interface Outcome {
  readonly succeeded: boolean
  readonly header: Header
  readonly found: KeyValue | undefined
}

type Target = { readonly key: string; readonly range_end?: string }

function encodeText(text: string): string {
  return Buffer.from(text).toString('base64')
}

/** Nothing is there, or nothing in the range. */
export function absent(target: Target): object {
  return { ...target, target: 'CREATE', result: 'EQUAL', create_revision: '0' }
}

export function unchanged({ key, mod_revision }: Pick<KeyValue, 'key' | 'mod_revision'>): object {
  return { key, target: 'MOD', result: 'EQUAL', mod_revision }
}

/** The key is on this lease; without one, on none. */
export function onLease(key: string, lease = '0'): object {
  return { key, target: 'LEASE', result: 'EQUAL', lease }
}

/** Takes the name if it is free and nobody waits; else says who left the lease last. */
export function takeIfFree(keys: Keys, claim: Claim, { lease, mark }: Pick<Spare, 'lease' | 'mark'>): object {
  const { name, id } = claim
  const [held, left] = [keys.held(name), keys.left(lease)]
  return {
    compare: [
      absent({ key: keys.gone(id) }),
      absent({ key: held }),
      absent(keys.line(name)),
      unchanged({ key: left, mod_revision: mark }),
    ],
    success: [{ request_put: { key: held, value: encode(claim), lease } }],
    failure: [{ request_range: { key: left } }],
  }
}

/** Deletes a key on a spare lease, and says at that lease who `left` it; else says who did last. */
export function leave(keys: Keys, condition: object, { key, lease, left }: Departure): object {
  const mark = keys.left(lease)
  return {
    compare: [condition, onLease(key, lease)],
    success: [{ request_delete_range: { key } }, { request_put: { key: mark, value: encodeText(left), lease } }],
    failure: [{ request_range: { key: mark } }],
  }
}

export function outcomeOf({ header, succeeded = false, responses }: TxnAnswer): Outcome {
  return { succeeded, header, found: responses?.[0]?.response_range?.kvs?.[0] }
}

/** The mod revision at which `left` has left the lease, by this request or by a copy of it. */
export function leftAt({ succeeded, header, found }: Outcome, left: string): string | undefined {
  if (succeeded) return header.revision
  return found?.value === encodeText(left) ? found.mod_revision : undefined
}

/** The key was made at this revision, and not since. */
export function madeAt(key: string, create_revision: string): object {
  return { key, target: 'CREATE', result: 'EQUAL', create_revision }
}

/** Takes a place in line, and says who holds and how many are in line then. Fails if it has one, or holds. */
export function join(keys: Keys, claim: Claim, lease: string): object {
  const { name, id } = claim
  const [held, place] = [keys.held(name), keys.place(name, id)]
  // If its key is on another lease this is found out by what is read.
  const isNotMine = { key: held, target: 'LEASE', result: 'NOT_EQUAL', lease }
  return {
    compare: [absent({ key: keys.gone(id) }), absent({ key: place }), isNotMine],
    success: [
      { request_put: { key: place, value: encode(claim), lease } },
      { request_range: { key: held } },
      { request_range: { ...keys.line(name), count_only: true } },
    ],
  }
}

/**
 * Takes the name if it is free and the claim has kept its place. Whose turn it is was found out before: nobody ever
 * comes before a place, and to have it compared etcd would read the whole line, 1.4 ms of 1,000 waiters.
 */
export function take(keys: Keys, claim: Claim, lease: string, revision: string): object {
  const { name, id } = claim
  const [held, place] = [keys.held(name), keys.place(name, id)]
  return {
    compare: [absent({ key: held }), { key: place, target: 'CREATE', result: 'EQUAL', create_revision: revision }],
    success: [{ request_put: { key: held, value: encode(claim), lease } }, { request_delete_range: { key: place } }],
  }
}

/** Reads, for `situationOf`: of the line those before `revision`, or only how many. */
export function situation(keys: Keys, { name, id }: Claim, revision?: string): object[] {
  return [
    { request_range: { key: keys.gone(id), count_only: true } },
    { request_range: { key: keys.held(name) } },
    { request_range: { key: keys.place(name, id) } },
    { request_range: revision === undefined ? { ...keys.line(name), count_only: true } : before(keys, name, revision) },
  ]
}

/** Those in line before a revision. To count them is not offered. */
export function before(keys: Keys, name: string, revision: string): object {
  return { ...keys.line(name), max_create_revision: (BigInt(revision) - 1n).toString(), keys_only: true }
}

/** What was read last in a transaction. */
export function situationOf({ responses = [] }: TxnAnswer, isBefore = false): Situation {
  const [gone, held, place, line] = responses.slice(-4).map(({ response_range = {} }) => response_range)
  return {
    isGone: Number(gone?.count ?? 0) > 0,
    held: held?.kvs?.[0],
    place: place?.kvs?.[0],
    line: isBefore ? (line?.kvs?.length ?? 0) : Number(line?.count ?? 0),
  }
}

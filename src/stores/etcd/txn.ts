import type { Claim } from '../../store.ts'
import type { Keys } from './keys.ts'
import type { KeyValue, TxnAnswer } from './messages.ts'
import { encode } from './record.ts'

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

type Target = { readonly key: string; readonly range_end?: string }

/** Nothing is there, or nothing in the range. */
export function absent(target: Target): object {
  return { ...target, target: 'CREATE', result: 'EQUAL', create_revision: '0' }
}

export function unchanged({ key, mod_revision }: KeyValue): object {
  return { key, target: 'MOD', result: 'EQUAL', mod_revision }
}

/** Takes the name if it is free and nobody waits. */
export function takeIfFree(keys: Keys, claim: Claim, lease: string): object {
  const { name, id } = claim
  const held = keys.held(name)
  return {
    compare: [absent({ key: keys.gone(id) }), absent({ key: held }), absent(keys.line(name))],
    success: [{ request_put: { key: held, value: encode(claim), lease } }],
  }
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

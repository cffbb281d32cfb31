import type { Claim } from '../../contract/store.ts'
import type { Keys } from './keys.ts'
import type { PooledLease } from './lease-pool.ts'
import type { Header, KeyValue, RangeAnswer, TxnAnswer } from './messages.ts'
import { counting, encodeHolder, encodeWaiter, passing } from './record.ts'
import { firstOf, type Granted, type View, viewOf } from './view.ts'

/** The state of a name, as one claim reads it. */
export interface Situation {
  /** Was the claim withdrawn? */
  readonly isGone: boolean
  /** The key of the claim in the queue. */
  readonly position: KeyValue | undefined
  readonly view: View
}

export interface Departure {
  readonly key: string
  readonly lease: string
  /** The id of the claim that leaves the lease, or of the break that removed it. */
  readonly left: string
}

/** The result of one transaction in a batch. If it failed, also what it read: first which claim last left the lease. */
export interface Outcome {
  readonly succeeded: boolean
  readonly header: Header
  readonly found: KeyValue | undefined
  readonly responses: NonNullable<TxnAnswer['responses']>
  /** May an earlier copy have succeeded, or still succeed? */
  readonly isRepeated: boolean
}

type Target = { readonly key: string; readonly range_end?: string }

function encodeText(text: string): string {
  return Buffer.from(text).toString('base64')
}

/** Compares that the key does not exist, or that the range is empty. */
export function absent(target: Target): object {
  return { ...target, target: 'CREATE', result: 'EQUAL', create_revision: '0' }
}

export function unchanged({ key, mod_revision }: Pick<KeyValue, 'key' | 'mod_revision'>): object {
  return { key, target: 'MOD', result: 'EQUAL', mod_revision }
}

/** Compares that the key has this lease. Without `lease`: that it has none. */
export function onLease(key: string, lease = '0'): object {
  return { key, target: 'LEASE', result: 'EQUAL', lease }
}

/** Compares that all keys of the range were created at this revision or before. Deleted keys do not matter. */
function noneSince(target: Target, revision: bigint): object {
  return { ...target, target: 'CREATE', result: 'LESS', create_revision: String(revision + 1n) }
}

/** Compares that the key was not written since, unless it was deleted. */
function notWrittenSince({ key, mod_revision }: KeyValue): object {
  return { key, target: 'MOD', result: 'LESS', mod_revision: String(BigInt(mod_revision) + 1n) }
}

/**
 * Acquires a name without holders and waiters. Otherwise it reads which claim last left the lease. For a claim that may
 * share the name it also reads what `situationOf` needs.
 */
export function takeIfUnused(keys: Keys, claim: Claim, { lease, mark }: Pick<PooledLease, 'lease' | 'mark'>): object {
  const { name, id, limit = 1, units = 1 } = claim
  const [left, slots] = [keys.left(lease), Array.from({ length: units }, (_, slot) => slot)]
  return {
    compare: [absent({ key: keys.gone(id) }), absent(keys.all(name)), unchanged({ key: left, mod_revision: mark })],
    success: [{ request_put: { key: keys.held(name, id), value: encodeHolder(claim, limit, slots), lease } }],
    failure: [{ request_range: { key: left } }, ...(limit > 1 ? situation(keys, claim) : [])],
  }
}

/**
 * With up to this many holders, a grant compares that each one still holds, so that it takes the lowest free slots. With
 * more, some always leave, and the grant would be decided again and again.
 */
export const MOST_COMPARED = 16

/**
 * Acquires the slots that `decide` found in this view. The comparisons: no key of a holder was created since, and if there
 * are few holders, none was deleted. That the claim at `position` is next was read before, and nobody can ever get ahead of
 * it. A claim without a `position` comes after all waiters, so none may have joined. If a comparison fails, it reads which
 * claim last left the lease, and what `situationOf` needs.
 */
export function take(
  keys: Keys,
  claim: Claim,
  { lease, mark }: Pick<PooledLease, 'lease' | 'mark'>,
  { slots, limit, passes, passed }: Granted,
  { revision, holders }: Pick<View, 'revision' | 'holders'>,
  position: string | undefined,
): object {
  const { name, id } = claim
  const [left, own] = [keys.left(lease), keys.position(name, id)]
  return {
    compare: [
      noneSince(keys.holders(name), revision),
      ...(holders.length > MOST_COMPARED ? [] : holders.map(found => madeAt(found.key, found.create_revision))),
      ...(position === undefined
        ? [absent({ key: keys.gone(id) }), noneSince(keys.queue(name), revision)]
        : [madeAt(own, position)]),
      unchanged({ key: left, mod_revision: mark }),
      ...passed.map(notWrittenSince),
      ...(passes ? [unchanged(passes)] : []),
    ],
    success: [
      { request_put: { key: keys.held(name, id), value: encodeHolder(claim, limit, slots), lease } },
      ...(position === undefined ? [] : [{ request_delete_range: { key: own } }]),
      ...(passes ? [{ request_put: { key: passes.key, value: passing(passes), ignore_lease: true } }] : []),
    ],
    failure: [{ request_range: { key: left } }, ...situation(keys, claim)],
  }
}

/** Marks a waiter that was passed as counting again, unless it has changed. Then reads all keys of the name. */
export function countAgain(keys: Keys, name: string, position: KeyValue, roundTrip: number): object {
  const put = { request_put: { key: position.key, value: counting(position, roundTrip), ignore_lease: true } }
  const read = { request_range: keys.all(name) }
  return { compare: [unchanged(position)], success: [put, read], failure: [read] }
}

/** The keys that `countAgain` read. */
export function keysIn({ header, responses = [] }: TxnAnswer): RangeAnswer {
  return { ...responses.at(-1)?.response_range, header }
}

/** Deletes a key on a pooled lease and records who `left` the lease. Otherwise reads which claim last left it. */
export function leave(keys: Keys, condition: object, { key, lease, left }: Departure): object {
  const mark = keys.left(lease)
  return {
    compare: [condition, onLease(key, lease)],
    success: [{ request_delete_range: { key } }, { request_put: { key: mark, value: encodeText(left), lease } }],
    failure: [{ request_range: { key: mark } }],
  }
}

export function outcomeOf({ header, succeeded = false, responses = [], isRepeated = false }: TxnAnswer): Outcome {
  return { succeeded, header, isRepeated, responses, found: responses[0]?.response_range?.kvs?.[0] }
}

/** The mod revision at which `left` left the lease, perhaps through another request. */
export function leftAt({ succeeded, header, found }: Outcome, left: string): string | undefined {
  if (succeeded) return header.revision
  return found?.value === encodeText(left) ? found.mod_revision : undefined
}

/** Did this request, or a copy of it, leave the lease? */
export function isOwn({ succeeded, isRepeated }: Pick<Outcome, 'succeeded' | 'isRepeated'>): boolean {
  return succeeded || isRepeated
}

/** Compares that the key was created at this revision. */
export function madeAt(key: string, create_revision: string): object {
  return { key, target: 'CREATE', result: 'EQUAL', create_revision }
}

/**
 * Joins the queue with the `roundTrip` of this process. Reads the holders, and all of the queue or its length. If the claim
 * is in the queue, holds, or was withdrawn, the transaction fails and reads what `situationOf` needs.
 */
export function join(keys: Keys, claim: Claim, lease: string, roundTrip: number, whole: boolean): object {
  const { name, id } = claim
  const position = keys.position(name, id)
  return {
    compare: [absent({ key: keys.gone(id) }), absent({ key: position }), absent({ key: keys.held(name, id) })],
    success: [
      { request_put: { key: position, value: encodeWaiter(claim, roundTrip), lease } },
      { request_range: keys.holders(name) },
      { request_range: { ...keys.queue(name), count_only: !whole } },
    ],
    failure: situation(keys, claim),
  }
}

/** Moves the position of a waiter to the lease of the process that now asks for it. */
export function adopt(key: string, position: string, lease: string): object {
  return { compare: [madeAt(key, position)], success: [{ request_put: { key, ignore_value: true, lease } }] }
}

/** Deletes the position if it is this one, on this lease. */
export function leaveQueue(key: string, position: string, lease: string): object {
  return { compare: [madeAt(key, position), onLease(key, lease)], success: [{ request_delete_range: { key } }] }
}

/** The reads that `situationOf` needs. */
function situation(keys: Keys, { name, id }: Claim): object[] {
  const [gone, position] = [keys.gone(id), keys.position(name, id)]
  return [
    { request_range: { key: gone, count_only: true } },
    { request_range: { key: position } },
    ...firstOf(keys, name),
  ]
}

/** Parses the last reads of a transaction. */
export function situationOf({ header, responses = [] }: Pick<TxnAnswer, 'header' | 'responses'>): Situation {
  const [gone, position, holders, waiters] = responses.slice(-4).map(({ response_range = {} }) => response_range)
  return {
    isGone: Number(gone?.count ?? 0) > 0,
    position: position?.kvs?.[0],
    view: viewOf(holders ?? {}, waiters ?? {}, header.revision),
  }
}

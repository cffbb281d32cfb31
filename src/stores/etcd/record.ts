import { LeaseError } from '../../contract/errors.ts'
import type { Claim, LeaseRecord } from '../../contract/store.ts'
import { gracePeriod } from '../../contract/time.ts'
import { type Asker, positionLifetime } from '../rules/name.ts'
import { secondsOf } from './keys.ts'
import type { KeyValue } from './messages.ts'

const FORMAT = 3

/** The value of a claim's key. Another program may have written anything. */
interface Details {
  readonly format?: unknown
  readonly id?: unknown
  readonly owner?: unknown
  readonly note?: unknown
  /** The requested ttl in ms. For a holder it decides nothing. */
  readonly ttl?: unknown
  /** @default 1 */
  readonly limit?: unknown
  /** The slots of a holder. @default slot 0 alone */
  readonly slots?: unknown
  /** The number of slots that a waiter wants. @default 1 */
  readonly units?: unknown
  /** The round trip of a waiter in ms. */
  readonly roundTrip?: unknown
  /** Did the waiter let its grace period pass? It counts again once it asks. */
  readonly passed?: unknown
}

/** Encodes a claim that holds these slots. Its limit is that of its first request. */
export function encodeHolder({ id, owner, note, ttl }: Claim, limit: number, slots: readonly number[]): string {
  return base64({ format: FORMAT, id, owner, note, ttl, limit: orNone(limit), slots: shown(slots) })
}

export function encodeWaiter({ id, owner, note, ttl, limit, units }: Claim, roundTrip: number): string {
  return base64({ format: FORMAT, id, owner, note, ttl, limit: orNone(limit), units: orNone(units), roundTrip })
}

/** Encodes the same value with another note. */
export function annotated(found: KeyValue, note: string): string {
  return base64({ ...read(found), note })
}

/** Encodes the same waiter, marked as passed. */
export function passing(found: KeyValue): string {
  return base64({ ...read(found), passed: true })
}

/** Encodes the same waiter, which counts again, with the `roundTrip` that it has now. */
export function counting(found: KeyValue, roundTrip: number): string {
  return base64({ ...read(found), passed: undefined, roundTrip })
}

export function isPassed(found: KeyValue): boolean {
  return read(found).passed === true
}

/** Returns the id of the claim. Throws if another version of this package wrote the value. */
export function idOf(found: KeyValue): string {
  const { format, id } = read(found)
  if (format === FORMAT) return String(id)
  const says = `the lease is written in format ${String(format)} by something else, this version knows format ${FORMAT}`
  throw new LeaseError('FORMAT_MISMATCH', `${says}: use the same version of Holdfast everywhere`)
}

export function limitOf(found: KeyValue): number {
  return numberOr(read(found).limit, 1)
}

/** Returns the slots in rising order. */
export function slotsOf(found: KeyValue): readonly number[] {
  const { slots } = read(found)
  return Array.isArray(slots) && slots.every(Number.isSafeInteger) ? slots : [0]
}

/** Returns what the rules need to know about a waiter. Throws like `idOf`. */
export function askerOf(found: KeyValue): Asker {
  const { ttl, units, roundTrip } = read(found)
  return {
    ...{ id: idOf(found), owner: '', note: '', ttl: numberOr(ttl, 0), limit: limitOf(found) },
    ...{ units: numberOr(units, 1), grace: gracePeriod(numberOr(roundTrip, 0)), queue: true },
  }
}

/** The slots in records and grants: `undefined` for slot 0 alone. */
export function shown(slots: readonly number[]): readonly number[] | undefined {
  return slots.length === 1 && slots[0] === 0 ? undefined : slots
}

export function holderOf(name: string, found: KeyValue, remaining: number): LeaseRecord {
  const [limit, slots, token] = [orNone(limitOf(found)), shown(slotsOf(found)), BigInt(found.create_revision)]
  const record: LeaseRecord = { name, state: 'held', ...detailsOf(found), token, remaining }
  return { ...record, ...(limit && { limit }), ...(slots && { slots }) }
}

/**
 * The record of a waiter. Reading its remaining time would cost one request for each waiter, so it shows the most that it
 * can be.
 */
export function waiterOf(name: string, found: KeyValue, position: number): LeaseRecord {
  const [limit, units] = [orNone(limitOf(found)), orNone(numberOr(read(found).units, 1))]
  const remaining = positionSeconds(secondsAsked(found) * 1_000) * 1_000
  const record: LeaseRecord = { name, state: 'waiting', ...detailsOf(found), remaining, position }
  return { ...record, ...(limit && { limit }), ...(units && { units }) }
}

/** The ttl of the etcd lease of a position, in seconds. */
export function positionSeconds(ttl: number): number {
  return secondsOf(positionLifetime(ttl))
}

/** The details that inspection shows. Does not fail for a value that another program wrote. */
function detailsOf(found: KeyValue): Pick<Claim, 'owner' | 'note'> {
  const { owner, note } = read(found)
  return { owner: typeof owner === 'string' ? owner : '', note: typeof note === 'string' ? note : '' }
}

/** The first ttl that the claim requested, in seconds, rounded up. */
export function secondsAsked(found: KeyValue): number {
  return secondsOf(numberOr(read(found).ttl, 0))
}

/** Parsed values: a watch reports a key once, but its queue is judged many times. */
const parsed = new WeakMap<KeyValue, Details>()

function read(found: KeyValue): Details {
  const known = parsed.get(found)
  if (known) return known
  const details = parse(found.value)
  parsed.set(found, details)
  return details
}

function parse(value = ''): Details {
  try {
    return Object(JSON.parse(Buffer.from(value, 'base64').toString()))
  } catch {
    return {}
  }
}

function numberOr(value: unknown, otherwise: number): number {
  return typeof value === 'number' ? value : otherwise
}

/** Omits a limit or units of 1 from the value. */
function orNone(value = 1): number | undefined {
  return value === 1 ? undefined : value
}

function base64(details: object): string {
  return Buffer.from(JSON.stringify(details)).toString('base64')
}

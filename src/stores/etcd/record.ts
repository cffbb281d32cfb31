import { LeaseError } from '../../contract/errors.ts'
import type { Claim, LeaseRecord } from '../../contract/store.ts'
import { gracePeriod } from '../../contract/time.ts'
import { type Asker, positionLifetime } from '../rules/name.ts'
import { secondsOf } from './keys.ts'
import type { KeyValue } from './messages.ts'

const FORMAT = 2

/** What a key says of a claim. Another program may have written anything. */
interface Details {
  readonly format?: unknown
  readonly id?: unknown
  readonly owner?: unknown
  readonly note?: unknown
  /** As requested, in ms. Of a holder it decides nothing. */
  readonly ttl?: unknown
  /** @default 1 */
  readonly limit?: unknown
  /** Of a holder. @default slot 0 alone */
  readonly slots?: unknown
  /** Of a waiter: how many slots it wants. @default 1 */
  readonly units?: unknown
  /** Of a waiter, in ms. */
  readonly roundTrip?: unknown
  /** Of a waiter: did it let its grace period pass? It counts again once it asks. */
  readonly passed?: unknown
}

/** A claim that holds these slots. Its limit is that of its first request. */
export function encodeHolder({ id, owner, note, ttl }: Claim, limit: number, slots: readonly number[]): string {
  return base64({ format: FORMAT, id, owner, note, ttl, limit: orNone(limit), slots: shown(slots) })
}

export function encodeWaiter({ id, owner, note, ttl, limit, units }: Claim, roundTrip: number): string {
  return base64({ format: FORMAT, id, owner, note, ttl, limit: orNone(limit), units: orNone(units), roundTrip })
}

/** The same with another note. */
export function annotated(found: KeyValue, note: string): string {
  return base64({ ...read(found), note })
}

/** The same waiter, passed or not. */
export function passing(found: KeyValue, passed: boolean): string {
  return base64({ ...read(found), passed: passed || undefined })
}

export function isPassed(found: KeyValue): boolean {
  return read(found).passed === true
}

/** The id of the claim. Throws if another version wrote the value. */
export function idOf(found: KeyValue): string {
  const { format, id } = read(found)
  if (format === FORMAT) return String(id)
  const says = `the lease is written in format ${String(format)} by something else, this version knows format ${FORMAT}`
  throw new LeaseError('FORMAT_MISMATCH', `${says}: use the same version of Holdfast everywhere`)
}

export function limitOf(found: KeyValue): number {
  return numberOr(read(found).limit, 1)
}

/** In rising order. */
export function slotsOf(found: KeyValue): readonly number[] {
  const { slots } = read(found)
  return Array.isArray(slots) && slots.every(Number.isSafeInteger) ? slots : [0]
}

/** What the rules know of a waiter. Throws as `idOf`. */
export function askerOf(found: KeyValue): Asker {
  const { ttl, units, roundTrip } = read(found)
  return {
    ...{ id: idOf(found), owner: '', note: '', ttl: numberOr(ttl, 0), limit: limitOf(found) },
    ...{ units: numberOr(units, 1), grace: gracePeriod(numberOr(roundTrip, 0)), queue: true },
  }
}

/** As records and grants show slots. */
export function shown(slots: readonly number[]): readonly number[] | undefined {
  return slots.length === 1 && slots[0] === 0 ? undefined : slots
}

export function holderOf(name: string, found: KeyValue, remaining: number): LeaseRecord {
  const [limit, slots, token] = [orNone(limitOf(found)), shown(slotsOf(found)), BigInt(found.create_revision)]
  const record: LeaseRecord = { name, state: 'held', ...detailsOf(found), token, remaining }
  return { ...record, ...(limit && { limit }), ...(slots && { slots }) }
}

/** The remaining time would cost a request for each waiter. It is at most this. */
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

/** Inspection does not fail for what another program wrote. */
function detailsOf(found: KeyValue): Pick<Claim, 'owner' | 'note'> {
  const { owner, note } = read(found)
  return { owner: typeof owner === 'string' ? owner : '', note: typeof note === 'string' ? note : '' }
}

/** The first ttl that the claim asked for, in seconds, rounded up. */
export function secondsAsked(found: KeyValue): number {
  return secondsOf(numberOr(read(found).ttl, 0))
}

/** A watch reports a key once, and its queue is judged many times. */
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

/** A limit or units of 1 are not written. */
function orNone(value = 1): number | undefined {
  return value === 1 ? undefined : value
}

function base64(details: object): string {
  return Buffer.from(JSON.stringify(details)).toString('base64')
}

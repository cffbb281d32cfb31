import { LeaseError } from '../../contract/errors.ts'
import type { Claim, LeaseRecord } from '../../contract/store.ts'
import { roundTripOf } from '../../contract/time.ts'
import { secondsOf } from './keys.ts'
import type { KeyValue } from './messages.ts'

const FORMAT = 1

/** `ttl`: as requested, in ms. It decides nothing. `roundTrip`: of a waiter, in ms. */
export function encode({ id, owner, note, ttl }: Claim, roundTrip?: number): string {
  return base64({ format: FORMAT, id, owner, note, ttl, roundTrip })
}

/** What the round trip of a waiter adds to its grace period. */
export function roundTripAt(found: KeyValue): number {
  const { roundTrip } = read(found)
  return typeof roundTrip === 'number' ? roundTripOf(roundTrip) : 0
}

/** The same with another note. */
export function annotated(found: KeyValue, note: string): string {
  return base64({ ...read(found), note })
}

/** The id of the claim. Throws if another version wrote the value. */
export function idOf(found: KeyValue): string {
  const { format, id } = read(found)
  if (format === FORMAT) return String(id)
  const says = `the lease is written in format ${String(format)} by something else, this version knows format ${FORMAT}`
  throw new LeaseError('STORE_UNAVAILABLE', `${says}: use the same version of Holdfast everywhere`, {
    retryable: false,
  })
}

export function holderOf(name: string, found: KeyValue, remaining: number): LeaseRecord {
  const { owner, note } = detailsOf(found)
  return { name, state: 'held', owner, token: BigInt(found.create_revision), note, remaining }
}

/** The remaining time would cost a request for each waiter. It is at most this. */
export function waiterOf(name: string, found: KeyValue, position: number): LeaseRecord {
  const { owner, note } = detailsOf(found)
  const remaining = secondsAsked(found) * 1_000
  return { name, state: 'waiting', owner, note, remaining, position }
}

/** Inspection does not fail for what another program wrote. */
function detailsOf(found: KeyValue): Pick<Claim, 'owner' | 'note'> {
  const { owner, note } = read(found)
  return { owner: typeof owner === 'string' ? owner : '', note: typeof note === 'string' ? note : '' }
}

/** The first ttl that the claim asked for, in seconds, rounded up. */
export function secondsAsked(found: KeyValue): number {
  const { ttl } = read(found)
  return secondsOf(typeof ttl === 'number' ? ttl : 0)
}

function read({ value = '' }: KeyValue): Record<string, unknown> {
  try {
    return Object(JSON.parse(Buffer.from(value, 'base64').toString()))
  } catch {
    return {}
  }
}

function base64(details: object): string {
  return Buffer.from(JSON.stringify(details)).toString('base64')
}

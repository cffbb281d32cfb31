import { events } from '../contract/events.ts'
import type { Claim, LeaseRecord } from '../contract/store.ts'
import type { Clock } from '../contract/time.ts'
import { warn } from '../contract/warnings.ts'
import type { ListedLease } from './core.ts'

/** Text for a call that waits for a lease of its own process. If another request holds it, that is no mistake. */
export const IF_INSIDE = 'if this call is inside it, leases are not re-entrant'

const ONE_LOCKS = 'make one Locks per process, also if modules are loaded again'

/** The leases of this process, by name: those over the store of a call, and those of all locks. */
export interface OwnLeases {
  readonly here: ReadonlyMap<string, ListedLease>
  readonly all: ReadonlyMap<string, readonly ListedLease[]>
}

/** A claim waits for a lease of its own process. A call inside the work of that lease waits for ever. */
export interface SelfWait {
  readonly lease: ListedLease
  /** Do other locks of this process hold it? */
  readonly isElsewhere: boolean
}

/** Finds a self-wait: for at least one ttl the claim has waited since `began`, and this process has held the name. */
export function findSelfWait(
  { name, ttl, limit }: Claim,
  holder: LeaseRecord | undefined,
  began: number,
  now: number,
  { here, all }: OwnLeases,
): SelfWait | undefined {
  // Other locks may hold the name in another store. Token and owner together show that it is this one.
  const isHolder = ({ token, owner }: ListedLease): boolean => token === holder?.token && owner === holder?.owner
  const lease = here.get(name) ?? all.get(name)?.find(isHolder)
  if (!lease || now < Math.max(began, lease.heldSince) + ttl) return undefined
  if (lease.limit !== undefined && limit !== undefined) return undefined // two permits are not a deadlock
  return { lease, isElsewhere: !here.has(name) }
}

/** Reports a self-wait. */
export function reportSelfWait({ lease, isElsewhere }: SelfWait, claim: Claim, clock: Clock, waited: number): void {
  const { name, owner } = claim
  events.self_wait.publish({ name, owner, lease: lease.handle, waited })
  const what = `acquire has waited ${waited} ms for ${JSON.stringify(name)}, ${heldHere(clock, lease, isElsewhere)}`
  const cure = isElsewhere ? ONE_LOCKS : `${IF_INSIDE}: pass the lease to it`
  warn('HOLDFAST_SELF_WAIT', `${what}; ${cure}; --trace-warnings shows the call`, name)
}

/** Says that this process holds a name, for a message: `held by another call of these locks …`. */
export function heldHere(clock: Clock, { owner, heldSince }: ListedLease, isElsewhere = false): string {
  const since = new Date(clock.wall() - (clock.now() - heldSince)).toISOString()
  return `held by ${isElsewhere ? 'other locks of this process' : 'another call of these locks'} (${owner}) since ${since}`
}

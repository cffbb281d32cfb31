import { channel } from 'node:diagnostics_channel'
import { invalid } from './check.ts'
import type { LeaseError } from './errors.ts'
import type { Lease } from './lease.ts'
import type { Claim, LeaseRecord } from './store.ts'
import type { WarningCode } from './warning-code.ts'

/** Everything observable, by name. Each is also the `node:diagnostics_channel` called `holdfast:` and that name. */
export interface LeaseEvents {
  /**
   * A name was asked for, told in the turn of the call. Either `lease_acquired` or `acquire_failed` follows, with the same
   * `id`.
   */
  acquire_began: Pick<Claim, 'id' | 'name' | 'owner' | 'ttl'>
  /** `error`: what the call rejects with, or for which `tryAcquire` answers `undefined`. */
  acquire_failed: { readonly id: string; readonly name: string; readonly owner: string; readonly error: unknown }
  /** `waited`: ms from the call to the grant. `requests`: how often the store was asked. */
  lease_acquired: {
    readonly id: string
    readonly lease: Lease
    readonly waited: number
    readonly requests: number
  }
  /** A claim was answered that it must wait, or is refused. */
  lease_busy: {
    readonly name: string
    readonly owner: string
    readonly holder: LeaseRecord | undefined
    /** Waiters before this one, where the store keeps a line. */
    readonly ahead: number | undefined
  }
  /**
   * A claim has waited at least one ttl for a name that the same locks hold. If the waiting call runs inside the work
   * that holds `lease`, it waits for ever: leases are not re-entrant. `waited`: ms. Emitted once per claim.
   */
  self_wait: { readonly name: string; readonly owner: string; readonly lease: Lease; readonly waited: number }
  /** A renewal succeeded. `latency`: ms of its request. `margin`: ms that were left of the lease when it came. */
  heartbeat: { readonly lease: Lease; readonly latency: number; readonly margin: number }
  /**
   * A renewal failed or was not answered; it is tried again until the lease's own deadline. Also when the thread that
   * renewed it has ended, or renews no more because this one was blocked for longer than its limit.
   */
  heartbeat_failed: { readonly lease: Lease; readonly error: LeaseError }
  /**
   * Ten times the p99 of the latency of renewals exceeds the ttl of this lease. Told once for each ttl, and at most once a
   * minute; after 100 heartbeats at the soonest. `leastTtl` is that of `locks.advice()`. In milliseconds.
   */
  ttl_too_short: { readonly lease: Lease; readonly p99: number; readonly leastTtl: number }
  /** `expired`: it was not renewed in time. `gone`: the store said so. `max_hold`: it was held for that long. */
  lease_lost: { readonly lease: Lease; readonly reason: LossReason; readonly error: LeaseError }
  /** `locks.break` of this process freed a name. `by`: who did it. `token` outranks the old holder's. */
  lease_broken: { readonly name: string; readonly by: string; readonly token: bigint }
  /** A lease that is held is given back, told in the turn of the call; `lease_released` or one of its failures follows. */
  release_began: { readonly lease: Lease }
  lease_released: { readonly lease: Lease }
  /**
   * Work that led failed, or the store did while a name was waited for to lead it: it is waited for again after `delay`
   * ms. `failures`: how many in a row.
   */
  leadership_delayed: {
    readonly name: string
    readonly error: unknown
    readonly failures: number
    readonly delay: number
  }
  /** The store did not confirm that a claim is withdrawn, so its ttl ends it. `lease`: the lease, if it was held. */
  release_failed: {
    readonly name: string
    readonly owner: string
    readonly lease: Lease | undefined
    readonly error: LeaseError
  }
  /** One request failed, or was not answered, and may be made again. Those of renewals are told as `heartbeat_failed`. */
  request_failed: {
    readonly request: 'acquire' | 'release'
    readonly name: string
    readonly owner: string
    readonly error: LeaseError
  }
  /**
   * A server answered that it refused a request that reached it after its time (`late`), or after its claim was taken back
   * (`withdrawn`). Redis and PostgreSQL only; not told of a request whose answer never came.
   */
  ghost_refused: { readonly store: 'redis' | 'postgres'; readonly reason: 'late' | 'withdrawn' }
  /** So many requests shared a script, statement or transaction. */
  batch_sent: { readonly size: number }
  /** A claim asked for the votes of a majority, in one round trip or with a second to agree on its token. */
  votes_counted: {
    readonly name: string
    /** `tie`: nobody has a majority. `unavailable`: too few nodes answered. */
    readonly outcome: 'won' | 'busy' | 'tie' | 'unavailable'
    readonly rounds: number
  }
  /** A node of a quorum does not answer, or cannot serve; it is asked again now and then. */
  node_failed: { readonly node: string; readonly error: LeaseError }
  /** A node of a quorum may have forgotten leases: it gives no new ones for `remaining` ms. */
  node_quarantined: { readonly node: string; readonly remaining: number }
  /** A node of a quorum answers again, or its quarantine is over. */
  node_restored: { readonly node: string }
  /** A warning, which `process.emitWarning` gets too. Emitted once per process and cause. */
  warning: { readonly code: WarningCode; readonly message: string }
}

export type LossReason = 'expired' | 'gone' | 'max_hold'

/** Where the core tells of one kind of event. */
interface Outlet<Message> {
  readonly hasSubscribers: boolean
  publish(message: Message): void
}

function open(name: keyof LeaseEvents): Outlet<unknown> {
  return channel(`holdfast:${name}`)
}

/** Test `hasSubscribers` before building a message: then an event that nobody hears costs a few ns. */
export const events: { readonly [Name in keyof LeaseEvents]: Outlet<LeaseEvents[Name]> } = {
  acquire_began: open('acquire_began'),
  acquire_failed: open('acquire_failed'),
  lease_acquired: open('lease_acquired'),
  lease_busy: open('lease_busy'),
  self_wait: open('self_wait'),
  heartbeat: open('heartbeat'),
  heartbeat_failed: open('heartbeat_failed'),
  ttl_too_short: open('ttl_too_short'),
  lease_lost: open('lease_lost'),
  lease_broken: open('lease_broken'),
  release_began: open('release_began'),
  lease_released: open('lease_released'),
  leadership_delayed: open('leadership_delayed'),
  release_failed: open('release_failed'),
  request_failed: open('request_failed'),
  ghost_refused: open('ghost_refused'),
  batch_sent: open('batch_sent'),
  votes_counted: open('votes_counted'),
  node_failed: open('node_failed'),
  node_quarantined: open('node_quarantined'),
  node_restored: open('node_restored'),
  warning: open('warning'),
}

/**
 * Calls `listener` at every such event of this process, synchronously, whichever `Locks` it comes from; answers how
 * to stop. A listener that throws becomes an uncaught exception, as Node does for every diagnostics channel.
 */
export function subscribe<Name extends keyof LeaseEvents>(
  name: Name,
  listener: (event: LeaseEvents[Name]) => void,
): () => void {
  if (!Object.hasOwn(events, name))
    throw invalid(`there is no event ${JSON.stringify(name)}, only ${Object.keys(events).join(', ')}`)
  if (typeof listener !== 'function')
    throw invalid(`the listener of ${name} must be a function, not ${typeof listener}`)
  const receive = (message: unknown): void => listener(message as LeaseEvents[Name])
  const target = channel(`holdfast:${name}`)
  target.subscribe(receive)
  return () => void target.unsubscribe(receive)
}

import { channel } from 'node:diagnostics_channel'
import { invalid } from './check.ts'
import type { LeaseError } from './errors.ts'
import type { Lease } from './lease.ts'
import type { Claim, LeaseRecord } from './store.ts'
import type { WarningCode } from './warning-code.ts'

/** The events, by name. Each is also a channel of `node:diagnostics_channel`, named `holdfast:` and the event. */
export interface LeaseEvents {
  /** A call requests a name. Emitted before it returns. `lease_acquired` or `acquire_failed` follows with the same `id`. */
  acquire_began: Pick<Claim, 'id' | 'name' | 'owner' | 'ttl'>
  /** The call ended without a lease. `error`: its rejection; for `tryAcquire` of a busy name `ACQUIRE_TIMEOUT`. */
  acquire_failed: { readonly id: string; readonly name: string; readonly owner: string; readonly error: unknown }
  /** The store granted the lease. `waited`: ms from the call to the grant. `requests`: acquire requests sent. */
  lease_acquired: {
    readonly id: string
    readonly lease: Lease
    readonly waited: number
    readonly requests: number
  }
  /** The store answered that another claim holds the name or is ahead in the queue. Emitted for each such answer. */
  lease_busy: {
    readonly name: string
    readonly owner: string
    readonly holder: LeaseRecord | undefined
    /** Waiters ahead of this one, if the store has a queue. */
    readonly ahead: number | undefined
  }
  /**
   * A claim has waited at least one ttl for a name that the same locks hold. If the call runs inside the work that holds
   * `lease`, it waits forever: leases are not re-entrant. `waited`: ms. Emitted once per claim.
   */
  self_wait: { readonly name: string; readonly owner: string; readonly lease: Lease; readonly waited: number }
  /** A renewal succeeded. `latency`: ms from its request to its answer. `margin`: ms that remained at the answer. */
  heartbeat: { readonly lease: Lease; readonly latency: number; readonly margin: number }
  /**
   * A renewal failed or was not answered. It is retried until the deadline of the lease. Also emitted when the heartbeat's
   * thread ended, or stopped renewing because the main thread was blocked for longer than its limit.
   */
  heartbeat_failed: { readonly lease: Lease; readonly error: LeaseError }
  /**
   * Ten times the p99 latency of renewals exceeds the ttl of this lease. Emitted once for each ttl, at most once a minute,
   * after at least 100 heartbeats. `p99` and `leastTtl`: ms, as in `locks.advice()`.
   */
  ttl_too_short: { readonly lease: Lease; readonly p99: number; readonly leastTtl: number }
  /**
   * The lease is over although it was not released. `expired`: it was not renewed in time. `gone`: the store no longer had
   * it. `max_hold`: it was held for `maxHold`.
   */
  lease_lost: { readonly lease: Lease; readonly reason: LossReason; readonly error: LeaseError }
  /** `locks.break` of this process freed a name. `by`: who broke it. `token` outranks the old holder's token. */
  lease_broken: { readonly name: string; readonly by: string; readonly token: bigint }
  /** The release of a held lease began. `lease_released`, `release_failed` or `lease_lost` follows. */
  release_began: { readonly lease: Lease }
  /** The store confirmed the release. */
  lease_released: { readonly lease: Lease }
  /**
   * The work of a leader failed, or the store failed while a candidate waited. The candidate tries again after `delay` ms.
   * `failures`: consecutive failures.
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
  /** A request failed or was not answered. It may be retried. Failed renewals are `heartbeat_failed`. */
  request_failed: {
    readonly request: 'acquire' | 'release'
    readonly name: string
    readonly owner: string
    readonly error: LeaseError
  }
  /**
   * A server refused a stale request: past its limit (`late`), or of a withdrawn claim (`withdrawn`). Only emitted if the
   * refusal arrives as an answer. `store`: the engine.
   */
  stale_request_refused: { readonly store: string; readonly reason: 'late' | 'withdrawn' }
  /** Requests shared a script, statement or transaction. `size`: their number. */
  batch_sent: { readonly size: number }
  /** A claim collected the votes of a quorum. `rounds`: 1, or 2 if the voters had to agree on its token. */
  votes_counted: {
    readonly name: string
    /** `tie`: no claim has a majority. `unavailable`: too few nodes answered. */
    readonly outcome: 'won' | 'busy' | 'tie' | 'unavailable'
    readonly rounds: number
  }
  /** A node of a quorum stopped answering, or cannot serve. It is probed until it recovers. */
  node_failed: { readonly node: string; readonly error: LeaseError }
  /** A node of a quorum may have forgotten leases. It grants none for `remaining` ms. */
  node_quarantined: { readonly node: string; readonly remaining: number }
  /** A node of a quorum answers again, or its quarantine is over. */
  node_restored: { readonly node: string }
  /** A warning, which is also emitted by `process.emitWarning`. Once per process and cause. */
  warning: { readonly code: WarningCode; readonly message: string }
}

export type LossReason = 'expired' | 'gone' | 'max_hold'

/** Emits one kind of event. */
interface Emitter<Message> {
  readonly hasSubscribers: boolean
  publish(message: Message): void
}

// As an object, so that none can be missing.
const NAMES: { readonly [Name in keyof LeaseEvents]: true } = {
  acquire_began: true,
  acquire_failed: true,
  lease_acquired: true,
  lease_busy: true,
  self_wait: true,
  heartbeat: true,
  heartbeat_failed: true,
  ttl_too_short: true,
  lease_lost: true,
  lease_broken: true,
  release_began: true,
  lease_released: true,
  leadership_delayed: true,
  release_failed: true,
  request_failed: true,
  stale_request_refused: true,
  batch_sent: true,
  votes_counted: true,
  node_failed: true,
  node_quarantined: true,
  node_restored: true,
  warning: true,
}

/**
 * Where an event is frequent or its message has a lease, check `hasSubscribers` before you build the message. Then an
 * event without subscribers costs a few nanoseconds.
 */
export const events: { readonly [Name in keyof LeaseEvents]: Emitter<LeaseEvents[Name]> } = Object.fromEntries(
  Object.keys(NAMES).map(name => [name, channel(`holdfast:${name}`)]),
) as never

/**
 * Calls `listener` synchronously for each event `name` of any `Locks` in this process. Returns a function that
 * unsubscribes. If the listener throws, that is an uncaught exception, as for every diagnostics channel.
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

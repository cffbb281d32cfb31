import type { LeaseError } from './errors.ts'
import type { Lease } from './lease.ts'
import type { LeaseRecord } from './store.ts'
import type { WarningCode } from './warning-code.ts'

/**
 * The events, by name. Each is also a channel of `node:diagnostics_channel`, named `holdfast:` and the event.
 * docs/reference/events.md is generated from these comments.
 */
export interface LeaseEvents {
  /** A call requests a name. Emitted before it returns. `lease_acquired` or `not_acquired` follows with the same `id`. */
  acquire_began: {
    /** Identifies the call. */
    readonly id: string
    /** The name. */
    readonly name: string
    /** The caller. */
    readonly owner: string
    /** The requested ttl in ms. */
    readonly ttl: number
    /** What is acquired: `permit`, `reader`, `writer`, or a name of a `set`. `undefined`: a lease on one name. */
    readonly kind?: SharedKind | undefined
  }
  /** The store granted the lease. Emitted before the call resolves. */
  lease_acquired: {
    /** Identifies the call. */
    readonly id: string
    /** The new lease. */
    readonly lease: Lease
    /** Ms from the call to the grant. */
    readonly waited: number
    /** Acquire requests sent. */
    readonly requests: number
  }
  /** The call ended without a lease: the name stayed busy, the caller aborted, or the call failed. */
  not_acquired: {
    /** Identifies the call. */
    readonly id: string
    /** The name. */
    readonly name: string
    /** The caller. */
    readonly owner: string
    /** The reason. `BUSY` if the name is busy, also for `tryAcquire`; then nothing failed. */
    readonly error: unknown
  }
  /** The store answered that another claim holds the name or is ahead in the queue. Emitted for each such answer. */
  lease_busy: {
    /** The name. */
    readonly name: string
    /** The caller. */
    readonly owner: string
    /** The holder, if the store knows it. */
    readonly holder: LeaseRecord | undefined
    /** Waiters ahead of this one, if the store has a queue. */
    readonly ahead: number | undefined
  }
  /**
   * A claim has waited at least one ttl for a name that the same process holds. If the call runs inside the work that
   * holds `lease`, it waits forever: leases are not re-entrant. Emitted once per claim.
   */
  self_wait: {
    /** The name. */
    readonly name: string
    /** The caller. */
    readonly owner: string
    /** The lease that holds the name. */
    readonly lease: Lease
    /** Ms since the call. */
    readonly waited: number
  }
  /** A renewal succeeded, also one by `extend()`. */
  heartbeat: {
    /** The lease. */
    readonly lease: Lease
    /** Ms from its request to its answer. */
    readonly latency: number
    /** Ms that remained until the deadline at the answer. */
    readonly margin: number
  }
  /**
   * A renewal failed or was not answered. It is retried until the deadline of the lease. Also emitted when the heartbeat's
   * thread ended, or stopped renewing because the main thread was blocked for longer than its limit.
   */
  heartbeat_failed: {
    /** The lease. */
    readonly lease: Lease
    /** Why. */
    readonly error: LeaseError
  }
  /**
   * Ten times the p99 latency of renewals exceeds the ttl of this lease. Emitted once for each ttl, at most once a minute,
   * after at least 100 heartbeats.
   */
  ttl_too_short: {
    /** The lease. */
    readonly lease: Lease
    /** Latency of renewals in ms. */
    readonly p99: number
    /** The least ttl in ms that `locks.advice()` recommends. */
    readonly leastTtl: number
  }
  /** The lease is over although it was not released. `lease.signal` has aborted. */
  lease_lost: {
    /** The lease. */
    readonly lease: Lease
    /**
     * `expired`: it was not renewed in time. `term`: it had no heartbeat, and its term ended. `gone`: the store no
     * longer had it. `max_hold`: it was held for `maxHold`.
     */
    readonly reason: LossReason
    /** `LEASE_LOST` or `MAX_HOLD`. */
    readonly error: LeaseError
  }
  /** `locks.break` of this process freed a name. The holder emits `lease_lost` in its own process. */
  lease_broken: {
    /** The name. */
    readonly name: string
    /** Who broke it. */
    readonly by: string
    /** A token that outranks the old holder's. */
    readonly token: bigint
  }
  /** The release of a held lease began. `lease_released`, `release_failed` or `lease_lost` follows. */
  release_began: {
    /** The lease. */
    readonly lease: Lease
  }
  /** The store confirmed the release. */
  lease_released: {
    /** The lease. */
    readonly lease: Lease
  }
  /** The store did not confirm that a claim is withdrawn, so its ttl ends it. */
  release_failed: {
    /** The name. */
    readonly name: string
    /** The owner of the claim. */
    readonly owner: string
    /** The lease, if it was held. */
    readonly lease: Lease | undefined
    /** The error of the last request. */
    readonly error: LeaseError
  }
  /** The work of a leader has ended, and its lease with it. */
  term_ended: {
    /** The lease. */
    readonly lease: Lease
    /**
     * `returned`: the work returned by itself. `failed`: it threw `error`. `lost`: the lease was lost. `stopped`: `resign`,
     * `release`, the signal or `close` ended the term.
     */
    readonly outcome: TermOutcome
    /** What the work threw if it failed. */
    readonly error: unknown
  }
  /** The work of a leader failed, or the store failed while a candidate waited. The candidate tries again after a delay. */
  leadership_delayed: {
    /** The name. */
    readonly name: string
    /** Why. */
    readonly error: unknown
    /** Consecutive failures of the work, or of the store. */
    readonly failures: number
    /** Ms until the next attempt. */
    readonly delay: number
  }
  /** An acquire, release or ping failed or was not answered. It may be retried. Failed renewals are `heartbeat_failed`. */
  request_failed: {
    /** What was requested. */
    readonly request: 'acquire' | 'release' | 'ping'
    /** The name. */
    readonly name: string
    /** The owner of the claim, or of these locks. */
    readonly owner: string
    /** Why. */
    readonly error: LeaseError
  }
  /** A server refused a stale request. Only emitted if the refusal arrives as an answer. */
  stale_request_refused: {
    /** The engine. */
    readonly store: string
    /** `late`: it arrived past its limit. `withdrawn`: its claim was withdrawn before. */
    readonly reason: 'late' | 'withdrawn'
  }
  /** Requests shared a round trip, script, statement or transaction. */
  batch_sent: {
    /** The number of requests. */
    readonly size: number
  }
  /** A claim collected the votes of a quorum, such as Redlock. */
  votes_counted: {
    /** The name. */
    readonly name: string
    /** `won`, or another claim has a majority (`busy`), none has one (`tie`), or too few nodes answered (`unavailable`). */
    readonly outcome: 'won' | 'busy' | 'tie' | 'unavailable'
    /** 1, or 2 if the voters had to agree on its token. */
    readonly rounds: number
  }
  /** A node of a quorum stopped answering, or cannot serve. It is probed until it recovers. */
  node_failed: {
    /** Its address. */
    readonly node: string
    /** Why. */
    readonly error: LeaseError
  }
  /** A node of a quorum may have forgotten leases, and grants none for now. */
  node_quarantined: {
    /** Its address. */
    readonly node: string
    /** Ms until it votes again. */
    readonly remaining: number
  }
  /** A node of a quorum answers again, or its quarantine is over. */
  node_restored: {
    /** Its address. */
    readonly node: string
  }
  /** A warning, which is also emitted by `process.emitWarning`. Once per process and cause, `HOLDFAST_TERM_FAILED` once per streak. */
  warning: {
    /** The stable code, such as `HOLDFAST_EVICTION`. */
    readonly code: WarningCode
    /** The text of the warning, for people to read. */
    readonly message: string
  }
}

/** The way in which a name is shared. */
export type SharedKind = 'permit' | 'reader' | 'writer' | 'set'

/** Why a lease was lost: see `lease_lost`. */
export type LossReason = 'expired' | 'term' | 'gone' | 'max_hold'

/** The way in which the term of a leader ended: see `term_ended`. */
export type TermOutcome = 'returned' | 'failed' | 'lost' | 'stopped'

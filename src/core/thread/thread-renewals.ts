import type { LeaseError } from '../../contract/errors.ts'
import { events } from '../../contract/events.ts'
import { type Entry, List } from '../../contract/list.ts'
import { within } from '../../contract/request.ts'
import type { Claim, Grant } from '../../contract/store.ts'
import { LAST_REQUEST, requestLimit } from '../../contract/time.ts'
import type { Acquired } from '../acquisition.ts'
import type { LeaseCore } from '../core.ts'
import type { Renewable } from '../heartbeat.ts'
import { HeldLease } from '../held-lease.ts'
import type { HoldTerms } from '../options.ts'
import { SharedDeadline } from './deadline.ts'
import { type Command, idOf, leaseError, type Notification } from './messages.ts'
import { SharedTerm } from './term.ts'

/** The worker, as the renewals of one lease see it. */
export interface WorkerLink {
  /** At least how many milliseconds the main thread was just blocked. */
  readonly blocked: number
  /** Sends a command. False: the worker has ended. */
  send(command: Command): boolean
  /** Resolves when the worker has extended the lease, to the error if it failed. After `signal` it is taken back. */
  extend(extension: Extension, signal: AbortSignal): Promise<LeaseError | undefined>
}

/** An extension of a lease. Times are in milliseconds. */
export interface Extension {
  readonly id: string
  readonly ttl: number
  /** The ttl of the lease if this fails. */
  readonly from: number
  /** The `maxBlocked` of the lease from now on. */
  readonly limit: number
}

/**
 * The renewals of one lease by the worker, as the main thread sees them. Decorates the store and the heartbeat of the
 * lease, so that the lease need not know who renews it. If the worker ends, the main thread renews the lease.
 */
export class ThreadRenewals {
  readonly lease: HeldLease
  readonly #worker: WorkerLink
  readonly #maxBlocked: number | undefined
  readonly #core: LeaseCore
  readonly #claim: Claim
  readonly #token: bigint
  readonly #deadline: SharedDeadline
  /** The longest ttl that the worker was asked for. Its requests may arrive for as long as those of this ttl. */
  #longest: number
  #stopped: Promise<void> | undefined
  #onStopped: ((unsettled: boolean) => void) | undefined
  /** The entry in the heartbeat of the main thread, after the worker has ended. */
  #beat: Entry<Renewable> | undefined

  constructor(worker: WorkerLink, core: LeaseCore, claim: Claim, acquired: Acquired, terms: HoldTerms) {
    const { grant, sent } = acquired
    const { clock } = core
    const term = new SharedTerm()
    this.#worker = worker
    this.#maxBlocked = terms.maxBlocked
    this.#core = core
    this.#claim = claim
    this.#token = grant.token
    this.#longest = claim.ttl
    this.#deadline = new SharedDeadline(term, clock, grant, sent, terms)
    term.write(() => this.#deadline.at - clock.now())
    term.read() // the deadline has it already
    this.lease = new HeldLease(this.#decorated(core), claim, acquired, terms, this.#deadline)
    this.#deadline.watch()
    const maxHold = sent + this.#deadline.maxHold - clock.now()
    const { maxBlocked } = terms
    const command = { kind: 'hold', claim, token: grant.token, term: term.memory, maxBlocked, maxHold } as const
    worker.send(command)
  }

  /** Called with what the worker reports about this lease. */
  receive(notification: Extract<Notification, { id: string }>): void {
    if (notification.kind === 'stopped') this.#onStopped?.(notification.unsettled)
    const lease = this.lease.handle
    if (!(lease.remaining > 0) || this.#stopped) return // if the lease is over, this check has reported it
    if (notification.kind === 'renewed' && events.heartbeat.hasSubscribers)
      events.heartbeat.publish({ lease, latency: notification.latency, margin: notification.margin })
    if (notification.kind === 'failed' && events.heartbeat_failed.hasSubscribers)
      events.heartbeat_failed.publish({ lease, error: leaseError(notification.error) })
  }

  /** Called when the worker has ended: the main thread renews the lease. */
  takeOver(error: LeaseError): void {
    this.#onStopped?.(true)
    const { lease } = this
    if (this.#stopped || !(lease.remaining > 0)) return
    this.#deadline.detach(this.#core.clock.now())
    lease.renewals.expectStale(this.#longest, error)
    this.#beat = this.#core.heartbeat.join(lease.renewals)
    if (events.heartbeat_failed.hasSubscribers) events.heartbeat_failed.publish({ lease: lease.handle, error })
  }

  #decorated(core: LeaseCore): LeaseCore {
    const { store, heartbeat, statistics } = core
    const deadline = this.#deadline
    return {
      ...core,
      store: {
        kind: store.kind,
        guarantees: store.guarantees,
        renew: (claim, signal) => (deadline.isShared ? this.#extend(claim.ttl, signal) : store.renew(claim, signal)),
        annotate: async (claim, signal) => {
          const isHeld = await store.annotate(claim, signal)
          if (isHeld && deadline.isShared) this.#worker.send({ kind: 'annotated', id: idOf(claim), note: claim.note })
          return isHeld
        },
        release: (key, signal) => store.release(key, signal),
        // There is no `onLoss`. The worker reports losses through shared memory, and may have moved the lease to a session
        // of its own. The end of this store's session says nothing then, also after the worker has ended: renewals tell.
      },
      heartbeat: {
        join: lease => new List<Renewable>().add(lease),
        leave: () => {
          if (!this.#beat) return this.#stop()
          return heartbeat.leave(this.#beat)
        },
        rejoin: (entry, ttl) => {
          if (this.#beat) this.#beat = heartbeat.rejoin(this.#beat, ttl)
          return entry
        },
        blocked: ttl => (this.#beat ? heartbeat.blocked(ttl) : this.#blocked(ttl)),
        limit: maxHold => void this.#worker.send({ kind: 'limit', id: idOf(this.#claim), maxHold }),
      },
      statistics: {
        answered: (...renewal) => deadline.isShared || statistics.answered(...renewal),
        failed: (...renewal) => deadline.isShared || statistics.failed(...renewal),
      },
    }
  }

  /** The last proof of liveness is up to a tenth of the limit older than the block. */
  #blocked(ttl: number): number {
    const { blocked } = this.#worker
    return blocked < 0.9 * (this.#maxBlocked ?? ttl) ? 0 : blocked
  }

  async #extend(ttl: number, signal: AbortSignal): Promise<Grant | undefined> {
    this.#longest = Math.max(this.#longest, ttl)
    const extension = { id: idOf(this.#claim), ttl, from: this.lease.ttl, limit: this.#maxBlocked ?? ttl }
    const error = await this.#worker.extend(extension, signal)
    if (error?.code === 'LEASE_LOST') return undefined
    if (error) throw error
    return { held: true, token: this.#token, ttl }
  }

  #stop(): Promise<void> {
    this.#deadline.detach(this.#core.clock.now())
    const stopped = new Promise<boolean>(resolve => {
      this.#onStopped = resolve
      if (!this.#worker.send({ kind: 'stop', id: idOf(this.#claim) })) resolve(true)
    })
    // The worker may need this long to give up a renewal.
    const limit = Math.max(requestLimit(this.lease.ttl), LAST_REQUEST)
    this.#stopped = within(this.#core.clock, limit, stopped, () => true, true).then(isUnsettled => {
      if (isUnsettled) this.lease.renewals.expectStale(this.#longest)
    })
    return this.#stopped
  }
}

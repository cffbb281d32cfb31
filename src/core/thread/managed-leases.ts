import { LeaseError } from '../../contract/errors.ts'
import { subscribe } from '../../contract/events.ts'
import type { Lease } from '../../contract/lease.ts'
import type { LeaseEvents } from '../../contract/lease-events.ts'
import { List } from '../../contract/list.ts'
import type { Claim, Grant, Store } from '../../contract/store.ts'
import { margin } from '../../contract/time.ts'
import { isSlow, type RenewalStatistics } from '../advice/renewal-statistics.ts'
import type { CoreEnvironment, LeaseCore } from '../core.ts'
import { Deadline } from '../deadline.ts'
import { Heartbeat } from '../heartbeat.ts'
import { HeldLease } from '../held-lease.ts'
import type { Liveness } from './liveness.ts'
import { type Command, idOf, type Notification, plainError } from './messages.ts'
import { SharedTerm } from './term.ts'
import { timestampNow } from './timestamp.ts'

type Hold = Extract<Command, { kind: 'hold' }>

interface ManagedLease extends Pick<Hold, 'claim' | 'token' | 'maxBlocked'> {
  readonly term: SharedTerm
  /** The clock's time after which the lease is no longer renewed. */
  endsAt: number
  readonly lease: HeldLease
  /** The note that the main thread wrote last. */
  note: string
  /** The time at which the latest renewal was sent. */
  sentAt: number
  /** An extension that the main thread waits for, and reports itself. */
  extending: Promise<unknown> | undefined
  /** The ttl that the main thread wants. */
  ttl: number
}

/**
 * The leases that the main thread holds and this worker renews. Each is an ordinary lease here too, so deadlines move by
 * the same rules. Its store checks the liveness of the main thread before each renewal, and leaves the release to it.
 */
export class ManagedLeases {
  readonly #store: Store
  readonly #core: LeaseCore
  readonly #liveness: Liveness
  readonly #statistics: RenewalStatistics
  readonly #notify: (notification: Notification) => void
  readonly #now: typeof timestampNow
  readonly #byId = new Map<string, ManagedLease>()
  readonly #byLease = new Map<Lease, ManagedLease>()
  readonly #unsubscribe: (() => void)[]

  /** `now` is for tests. */
  constructor(
    store: Store,
    environment: CoreEnvironment,
    liveness: Liveness,
    statistics: RenewalStatistics,
    notify: (notification: Notification) => void,
    now: typeof timestampNow = timestampNow,
  ) {
    this.#now = now
    this.#store = store
    this.#liveness = liveness
    this.#statistics = statistics
    this.#notify = notify
    this.#core = {
      ...environment,
      heartbeat: new Heartbeat(environment.clock, environment.random),
      statistics: { answered: this.#onAnswered.bind(this), failed: this.#onUnanswered.bind(this) },
      leases: new List(),
      store: this.#guarded(),
      onEnd: () => {},
      inBackground: () => {},
    }
    this.#unsubscribe = [
      subscribe('heartbeat', event => this.#onRenewed(event)),
      subscribe('heartbeat_failed', event => this.#onFailed(event)),
      subscribe('lease_lost', event => this.#onLost(event)),
      subscribe('batch_sent', event => liveness.isSubscribed('batch_sent') && notify({ kind: 'batch', event })),
      subscribe(
        'stale_request_refused',
        event => liveness.isSubscribed('stale_request_refused') && notify({ kind: 'refused', event }),
      ),
    ]
  }

  async execute(command: Command): Promise<void> {
    if (command.kind === 'hold') return this.#hold(command)
    const managed = this.#byId.get(command.id)
    if (command.kind === 'stop') return this.#stop(command.id, managed)
    if (!managed) return // the lease was stopped before
    if (command.kind === 'annotated') managed.note = command.note
    else if (command.kind === 'limit') managed.endsAt = this.#core.clock.now() + command.maxHold
    else {
      managed.ttl = command.ttl
      if (command.kind === 'extend') await this.#extend(managed, command)
      else await this.#keep(managed)
    }
  }

  close(): void {
    for (const unsubscribe of this.#unsubscribe) unsubscribe()
  }

  #hold({ claim, token, maxBlocked, maxHold, term: memory }: Hold): void {
    const now = this.#core.clock.now()
    const term = new SharedTerm(memory, this.#now)
    const remaining = term.read() ?? 0
    const grant: Grant = { held: true, token, ttl: claim.ttl }
    const renewed = now + remaining - (claim.ttl - margin(claim.ttl))
    const options = { heartbeat: true, background: true }
    const deadline = new Deadline(this.#core.clock, grant, renewed, options)
    // Later than now if the grant is longer than the ttl. Answers to requests from before `sent` are ignored.
    const sent = Math.min(renewed, now)
    const acquired = { grant, sent, unsettled: false, waited: 0, requests: 0 }
    const lease = new HeldLease(this.#core, claim, acquired, options, deadline)
    const managed: ManagedLease = {
      claim,
      token,
      maxBlocked,
      endsAt: now + maxHold,
      term,
      lease,
      note: claim.note,
      sentAt: Number.NaN,
      extending: undefined,
      ttl: claim.ttl,
    }
    this.#byId.set(idOf(claim), managed)
    this.#byLease.set(lease.handle, managed)
  }

  async #extend(managed: ManagedLease, { call, ttl, from }: Extract<Command, { kind: 'extend' }>): Promise<void> {
    while (managed.extending) await managed.extending // the main thread has given it up
    const extension = managed.lease.extend(ttl).then(
      () => undefined,
      reason => plainError(reason as LeaseError),
    )
    managed.extending = extension
    const error = await extension
    managed.extending = undefined
    if (error && managed.ttl === ttl) managed.ttl = from
    this.#notify({ kind: 'extended', call, error })
    await this.#keep(managed)
  }

  /** Sets the ttl again that the main thread wants, after an extension that it has given up. If it fails, later again. */
  async #keep({ lease, ttl, extending }: ManagedLease): Promise<void> {
    if (!extending && lease.ttl !== ttl) await lease.extend(ttl).catch(() => {})
  }

  async #stop(id: string, managed: ManagedLease | undefined): Promise<void> {
    managed?.lease.renewals.staleRequests.end() // an extension that waits for them is not sent any more
    while (managed?.extending) await managed.extending
    if (managed) this.#byLease.delete(managed.lease.handle) // first: its end is not reported
    await managed?.lease.end()
    this.#byId.delete(id)
    if (this.#byId.size === 0) this.#statistics.pause()
    this.#notify({ kind: 'stopped', id, unsettled: managed?.lease.renewals.unsettled ?? false })
  }

  #guarded(): LeaseCore['store'] {
    const store = this.#store
    return {
      kind: store.kind,
      guarantees: store.guarantees,
      renew: (claim, signal) => this.#renew(claim, signal),
      annotate: (claim, signal) => store.annotate(claim, signal),
      release: async () => 'released',
      onLoss: (key, lost) =>
        store.onLoss?.(key, () => {
          this.#byId.get(idOf(key))?.term.end()
          lost()
        }) ?? (() => {}),
    }
  }

  async #renew(claim: Claim, signal: AbortSignal): Promise<Grant | undefined> {
    const managed = this.#byId.get(idOf(claim))
    if (!managed) throw new LeaseError('CLOSED', 'the lease was released')
    this.#assertWanted(managed, claim.ttl)
    // A shorter ttl counts before its request is sent.
    if (!managed.term.write(() => managed.lease.remaining))
      throw new LeaseError('STORE_UNAVAILABLE', 'not sent: the renewals were stopped; try again')
    managed.sentAt = this.#core.clock.now()
    const grant = await this.#store.renew({ ...claim, note: managed.note }, signal)
    if (grant?.token !== managed.token) managed.term.end()
    return grant
  }

  #assertWanted({ maxBlocked, endsAt, lease, ttl: wanted }: ManagedLease, ttl: number): void {
    if (ttl !== wanted && ttl !== lease.ttl) throw new LeaseError('OUTCOME_UNKNOWN', 'the extension was given up')
    const blocked = this.#liveness.sinceProof
    const limit = maxBlocked ?? ttl
    if (!(blocked <= limit)) {
      const message = `not renewed: the event loop was blocked for ${Math.round(blocked)} ms, and maxBlocked allows ${limit} ms`
      throw new LeaseError('STORE_UNAVAILABLE', message)
    }
    if (this.#core.clock.now() >= endsAt) throw new LeaseError('MAX_HOLD', 'not renewed: maxHold is over')
  }

  #onAnswered(lease: Lease, sent: number, now: number): void {
    this.#statistics.answered(lease, sent, now)
    const managed = this.#byLease.get(lease)
    if (managed && isSlow(lease, now - sent) && this.#liveness.isSubscribed('ttl_too_short'))
      this.#notify({ kind: 'slow', id: idOf(managed.claim) })
  }

  /** A renewal that was not sent, because the main thread was blocked, says nothing about the store. */
  #onUnanswered(lease: Lease, sent: number): void {
    const managed = this.#byLease.get(lease)
    if (managed && managed.sentAt >= sent) this.#statistics.failed(lease, sent)
  }

  #onLost({ lease }: LeaseEvents['lease_lost']): void {
    const managed = this.#byLease.get(lease)
    if (managed) this.#notify({ kind: 'over', id: idOf(managed.claim) })
  }

  #onRenewed({ lease, latency, margin: left }: LeaseEvents['heartbeat']): void {
    const managed = this.#byLease.get(lease)
    if (!managed) return
    managed.term.write(() => lease.remaining)
    void this.#keep(managed)
    if (managed.extending || !this.#liveness.isSubscribed('heartbeat')) return
    this.#notify({ kind: 'renewed', id: idOf(managed.claim), latency, margin: left })
  }

  #onFailed({ lease, error }: LeaseEvents['heartbeat_failed']): void {
    const managed = this.#byLease.get(lease)
    if (!managed || managed.extending || !this.#liveness.isSubscribed('heartbeat_failed')) return
    this.#notify({ kind: 'failed', id: idOf(managed.claim), error: plainError(error) })
  }
}

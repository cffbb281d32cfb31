import { LeaseError } from '../../contract/errors.ts'
import { type LeaseEvents, subscribe } from '../../contract/events.ts'
import type { Lease } from '../../contract/lease.ts'
import { List } from '../../contract/list.ts'
import type { Claim, Grant, Store } from '../../contract/store.ts'
import { margin } from '../../contract/time.ts'
import { isSlow } from '../advice/pulse.ts'
import type { Core, CoreEnvironment } from '../core.ts'
import { Heartbeat } from '../heartbeat.ts'
import { HeldLease } from '../held-lease.ts'
import type { Liveness } from './liveness.ts'
import { type News, type Order, plainError } from './messages.ts'
import { momentNow } from './moment.ts'
import type { ThreadPulse } from './pulse.ts'
import { SharedTerm } from './term.ts'

type Hold = Extract<Order, { kind: 'hold' }>

interface Charge extends Pick<Hold, 'claim' | 'token' | 'livenessLimit'> {
  readonly term: SharedTerm
  /** The clock's time from which on it is renewed no more. */
  readonly endsAt: number
  readonly lease: HeldLease
  /** When the latest request for a renewal left. */
  askedAt: number
  /** Requests for a renewal that left and were not answered. */
  unanswered: number
  /** The main thread waits for this renewal, and will tell of it itself. */
  extending: Promise<unknown> | undefined
}

/**
 * The leases that the main thread holds and this one renews. Each is an ordinary lease here too, so that there is one
 * way in which deadlines move; only does its store ask for the main thread's liveness first, and leave the release to it.
 */
export class Charges {
  readonly #store: Store
  readonly #core: Core
  readonly #liveness: Liveness
  readonly #pulse: ThreadPulse
  readonly #tell: (news: News) => void
  readonly #now: typeof momentNow
  readonly #byId = new Map<string, Charge>()
  readonly #byLease = new Map<Lease, Charge>()
  readonly #stopListening: (() => void)[]

  /** `now` is for tests. */
  constructor(
    store: Store,
    environment: CoreEnvironment,
    liveness: Liveness,
    pulse: ThreadPulse,
    tell: (news: News) => void,
    now: typeof momentNow = momentNow,
  ) {
    this.#now = now
    this.#store = store
    this.#liveness = liveness
    this.#pulse = pulse
    this.#tell = tell
    const heartbeat = new Heartbeat(environment.clock, environment.random)
    const heard = { answered: this.#onAnswered.bind(this), failed: this.#onUnanswered.bind(this) }
    const guarded = this.#guarded()
    this.#core = {
      ...environment,
      heartbeat,
      pulse: heard,
      leases: new List(),
      store: guarded,
      onEnd: () => {},
      inBackground: () => {},
    }
    this.#stopListening = [
      subscribe('heartbeat', event => this.#onRenewed(event)),
      subscribe('heartbeat_failed', event => this.#onFailed(event)),
      subscribe('lease_lost', event => this.#onLost(event)),
      subscribe('batch_sent', event => liveness.isHeard('batch_sent') && tell({ kind: 'batch', event })),
      subscribe('ghost_refused', event => liveness.isHeard('ghost_refused') && tell({ kind: 'ghost', event })),
    ]
  }

  async carryOut(order: Order): Promise<void> {
    if (order.kind === 'hold') return this.#hold(order)
    const charge = this.#byId.get(order.id)
    if (order.kind === 'extend') await this.#extend(order.call, charge, order.ttl)
    else if (order.kind === 'annotated') charge?.lease.noteChanged(order.note)
    else await this.#stop(order.id, charge)
  }

  close(): void {
    for (const stop of this.#stopListening) stop()
  }

  #hold({ claim, token, livenessLimit, maxHold, term: memory }: Hold): void {
    const { clock } = this.#core
    const now = clock.now()
    const term = new SharedTerm(memory, this.#now)
    const remaining = term.read() ?? 0
    const sent = now + remaining - (claim.ttl - margin(claim.ttl))
    const acquired = {
      grant: { held: true, token, ttl: claim.ttl },
      sent,
      unsettled: false,
      waited: 0,
      requests: 0,
    } as const
    const lease = new HeldLease(this.#core, claim, acquired, { heartbeat: true, background: true, maxHold: undefined })
    const endsAt = now + maxHold
    const charge = {
      claim,
      token,
      livenessLimit,
      endsAt,
      term,
      lease,
      askedAt: Number.NaN,
      unanswered: 0,
      extending: undefined,
    }
    this.#byId.set(claim.id, charge)
    this.#byLease.set(lease.handle, charge)
  }

  async #extend(call: number, charge: Charge | undefined, ttl: number): Promise<void> {
    if (!charge) return // stopped before
    const extension = charge.lease.extend(ttl).then(
      () => undefined,
      reason => plainError(reason as LeaseError),
    )
    charge.extending = extension
    const error = await extension
    charge.extending = undefined
    this.#tell({ kind: 'extended', call, error })
  }

  async #stop(id: string, charge: Charge | undefined): Promise<void> {
    await charge?.extending
    if (charge) this.#byLease.delete(charge.lease.handle) // before its end, because it has nothing more to report
    await charge?.lease.end()
    this.#byId.delete(id)
    if (this.#byId.size === 0) this.#pulse.rest()
    this.#tell({ kind: 'stopped', id, unsettled: (charge?.unanswered ?? 0) > 0 })
  }

  #guarded(): Store {
    const store = this.#store
    return {
      kind: store.kind,
      guarantees: store.guarantees,
      acquire: (claim, signal) => store.acquire(claim, signal),
      renew: (claim, signal) => this.#renew(claim, signal),
      annotate: (claim, signal) => store.annotate(claim, signal),
      release: async () => 'released',
      onLoss: (key, lost) =>
        store.onLoss?.(key, () => {
          this.#byId.get(key.id)?.term.end()
          lost()
        }) ?? (() => {}),
      inspect: (query, signal) => store.inspect(query, signal),
      break: (name, by, signal) => store.break(name, by, signal),
      [Symbol.asyncDispose]: () => Promise.resolve(store[Symbol.asyncDispose]()),
    }
  }

  async #renew(claim: Claim, signal: AbortSignal): Promise<Grant | undefined> {
    const charge = this.#byId.get(claim.id)
    if (!charge) throw new LeaseError('CLOSED', 'the lease was released')
    this.#assertWanted(charge, claim.ttl)
    charge.term.write(() => charge.lease.remaining) // a shorter ttl counts from before it is asked for
    charge.askedAt = this.#core.clock.now()
    charge.unanswered += 1
    const grant = await this.#store.renew(claim, signal)
    charge.unanswered -= 1
    if (grant?.token !== charge.token) charge.term.end()
    return grant
  }

  #assertWanted({ livenessLimit, endsAt }: Charge, ttl: number): void {
    const { silence } = this.#liveness
    const limit = livenessLimit ?? ttl
    if (!(silence <= limit)) {
      const message = `not renewed: the event loop did not turn for ${Math.round(silence)} ms, and may for ${limit} ms`
      throw new LeaseError('STORE_UNAVAILABLE', message)
    }
    if (this.#core.clock.now() >= endsAt) throw new LeaseError('MAX_HOLD', 'not renewed: maxHold is over')
  }

  #onAnswered(lease: Lease, sent: number, now: number): void {
    this.#pulse.answered(lease, sent, now)
    const charge = this.#byLease.get(lease)
    if (charge && isSlow(lease, now - sent) && this.#liveness.isHeard('ttl_too_short'))
      this.#tell({ kind: 'slow', id: charge.claim.id })
  }

  /** Of a renewal that was not asked for, since the main thread did not live, the store tells nothing. */
  #onUnanswered(lease: Lease, sent: number): void {
    const charge = this.#byLease.get(lease)
    if (charge && charge.askedAt >= sent) this.#pulse.failed(lease, sent)
  }

  #onLost({ lease }: LeaseEvents['lease_lost']): void {
    const charge = this.#byLease.get(lease)
    if (charge) this.#tell({ kind: 'over', id: charge.claim.id })
  }

  #onRenewed({ lease, latency, margin: left }: LeaseEvents['heartbeat']): void {
    const charge = this.#byLease.get(lease)
    if (!charge) return
    charge.term.write(() => lease.remaining)
    if (charge.extending || !this.#liveness.isHeard('heartbeat')) return
    this.#tell({ kind: 'renewed', id: charge.claim.id, latency, margin: left })
  }

  #onFailed({ lease, error }: LeaseEvents['heartbeat_failed']): void {
    const charge = this.#byLease.get(lease)
    if (!charge || charge.extending || !this.#liveness.isHeard('heartbeat_failed')) return
    this.#tell({ kind: 'failed', id: charge.claim.id, error: plainError(error) })
  }
}

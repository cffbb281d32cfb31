import type { LeaseError } from '../../contract/errors.ts'
import { events } from '../../contract/events.ts'
import { request } from '../../contract/request.ts'
import type { Claim, Grant } from '../../contract/store.ts'
import { LAST_REQUEST, requestLimit } from '../../contract/time.ts'
import type { HeldLease } from '../held-lease.ts'
import type { Renewals } from '../renewals.ts'
import { leaseError, type News, type Order } from './messages.ts'
import type { SharedTerm } from './term.ts'
import type { HeartbeatThread } from './thread.ts'

/** What concerns one lease. */
type LeaseNews = Extract<News, { id: string }>

/** The renewals of one lease by the worker, as the main thread sees them. */
export class ThreadRenewals implements Renewals {
  readonly #thread: HeartbeatThread
  readonly #term: SharedTerm
  readonly #order: Extract<Order, { kind: 'hold' }>
  #lease: HeldLease | undefined
  #stopped: Promise<boolean> | undefined
  #onStopped: ((unsettled: boolean) => void) | undefined

  constructor(thread: HeartbeatThread, term: SharedTerm, order: Extract<Order, { kind: 'hold' }>) {
    this.#thread = thread
    this.#term = term
    this.#order = order
  }

  begin(lease: HeldLease): void {
    this.#lease = lease
    this.#thread.begin(this.#order, this)
  }

  look(): number | undefined {
    return this.#term.read()
  }

  async renew({ id, ttl }: Claim, signal: AbortSignal): Promise<Grant | undefined> {
    const error = await this.#thread.extend(id, ttl, signal)
    if (error?.code === 'LEASE_LOST') return undefined
    if (error) throw error
    return { held: true, token: this.#order.token, ttl }
  }

  annotated(note: string): void {
    this.#thread.annotated(this.#order.claim.id, note)
  }

  stop(): Promise<boolean> {
    this.#stopped ??= request(this.#thread.clock, this.#limit, () => this.#untilStopped(), { background: true }).catch(
      () => true,
    )
    return this.#stopped
  }

  hear(news: LeaseNews): void {
    if (news.kind === 'stopped') this.#onStopped?.(news.unsettled)
    const lease = this.#lease?.handle
    if (!lease || !(lease.remaining > 0)) return // by looking it was told, if it is over
    if (news.kind === 'renewed') {
      const { latency, margin } = news
      if (events.heartbeat.hasSubscribers) events.heartbeat.publish({ lease, latency, margin })
    }
    if (news.kind === 'slow' && events.ttl_too_short.hasSubscribers) this.#thread.pulse.warn(lease)
    if (news.kind === 'failed' && events.heartbeat_failed.hasSubscribers)
      events.heartbeat_failed.publish({ lease, error: leaseError(news.error) })
  }

  /** What the worker may need to give up a renewal. */
  get #limit(): number {
    return Math.max(requestLimit(this.#lease?.ttl ?? this.#order.claim.ttl), LAST_REQUEST)
  }

  #untilStopped(): Promise<boolean> {
    return new Promise(resolve => {
      this.#onStopped = resolve
      if (!this.#thread.stop(this.#order.claim.id)) resolve(true)
    })
  }

  /** The worker is no more. */
  fail(error: LeaseError): void {
    if (this.#stopped) this.#onStopped?.(true)
    else this.#lease?.takeOver(error)
  }
}

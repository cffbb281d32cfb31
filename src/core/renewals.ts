import { checkTtl } from '../contract/check.ts'
import type { LeaseError } from '../contract/errors.ts'
import { events } from '../contract/events.ts'
import type { LossReason } from '../contract/lease-events.ts'
import type { Entry } from '../contract/list.ts'
import { request } from '../contract/request.ts'
import type { Claim } from '../contract/store.ts'
import { LONGEST_REQUEST, margin, requestLimit } from '../contract/time.ts'
import type { Acquired } from './acquisition.ts'
import type { LeaseCore } from './core.ts'
import type { Deadline } from './deadline.ts'
import type { Renewable } from './heartbeat.ts'
import type { LeaseHandle } from './lease-handle.ts'
import { StaleRequests } from './stale-requests.ts'

/** What renewals need from their lease. */
interface RenewedLease {
  readonly token: bigint
  readonly handle: LeaseHandle
  readonly remaining: number
  /** The loss, if one was detected. */
  readonly loss: LeaseError | undefined
  readonly isReleasing: boolean
  /** Detects a loss at once, without waiting for a timer. */
  check(): LeaseError | undefined
  assertHeld(): void
  lose(reason: LossReason): void
  /** Warns from now on if the program loses the handle. */
  watchHandle(): void
}

/** A renewal that was sent at `sent`. */
interface Flight {
  readonly sent: number
}

/** The renewals of one lease, its current ttl, and the requests that may still arrive at the store. */
export class Renewals implements Renewable {
  /** The claim, with the current ttl and note. */
  claim: Claim
  renewedAt: number
  readonly staleRequests: StaleRequests = new StaleRequests()
  readonly #core: LeaseCore
  readonly #lease: RenewedLease
  readonly #deadline: Deadline
  /** The renewals that are not answered yet. */
  readonly #flights = new Set<Flight>()
  /** Until then, an unanswered request may arrive and do harm. A store refuses a withdrawn claim for as long (R4). */
  #unsettledUntil = Number.NEGATIVE_INFINITY
  #landed: PromiseWithResolvers<void> | undefined
  /** The request that changes the ttl. No other request may be in flight with it. */
  #change: Promise<LeaseError | undefined> | undefined
  /** The error of the last renewal, if it failed. */
  #failure: LeaseError | undefined
  #beat: Entry<Renewable> | undefined

  constructor(core: LeaseCore, lease: RenewedLease, claim: Claim, acquired: Acquired, deadline: Deadline) {
    const { grant, sent, unsettled } = acquired
    this.#core = core
    this.#lease = lease
    this.claim = { ...claim, token: grant.token }
    this.renewedAt = sent
    if (unsettled) this.#unsettledUntil = sent + LONGEST_REQUEST
    this.#deadline = deadline
  }

  get ttl(): number {
    return this.claim.ttl
  }

  /** Does the heartbeat renew the lease? */
  get isOn(): boolean {
    return this.#beat !== undefined
  }

  /** May an unanswered request still arrive at the store? */
  get unsettled(): boolean {
    return this.#flights.size > 0 || this.#core.clock.now() < this.#unsettledUntil
  }

  /** Resolves when one of the renewals in flight has settled. `undefined`: none is in flight. */
  get inFlight(): Promise<void> | undefined {
    if (this.#flights.size === 0) return undefined
    this.#landed ??= Promise.withResolvers()
    return this.#landed.promise
  }

  /** The same, if no later one was answered. Otherwise the answer of those in flight may have been lost: nobody needs it. */
  get unanswered(): Promise<void> | undefined {
    const isNewer = ({ sent }: Flight): boolean => sent > this.renewedAt
    return [...this.#flights].some(isNewer) ? this.inFlight : undefined
  }

  start(): void {
    this.#beat = this.#core.heartbeat.join(this)
  }

  stop(): void {
    if (!this.#beat) return
    this.#failure = undefined
    const left = this.#core.heartbeat.leave(this.#beat)
    if (left) {
      const flight = this.#takeOff(Number.POSITIVE_INFINITY)
      void left.then(() => this.#land(flight))
    }
    this.#beat = undefined
  }

  /** Called when renewals of up to this ttl, which another thread sent, may still arrive. */
  expectStale(ttl: number, failure?: LeaseError): void {
    this.#missed(this.#core.clock.now(), ttl, failure)
  }

  /** Implements `Lease.extend`. Without `wanted` the ttl is what it is when the request is sent. */
  async extend(wanted?: number): Promise<number> {
    const { clock, store } = this.#core
    let ttl = wanted === undefined ? this.ttl : wanted
    checkTtl(ttl, store)
    this.#lease.assertHeld()
    // Renewals that could set another ttl again must be over. If they fail, the store does not answer.
    while (ttl !== this.ttl || this.#change) {
      const { inFlight } = this
      if (!inFlight && !(ttl > this.ttl && this.staleRequests.arePossible(clock))) break
      await (inFlight ?? this.staleRequests.over(clock))
      this.#lease.assertHeld()
      if (inFlight && this.#failure) throw this.#failure
      ttl = wanted ?? this.ttl
    }
    // A longer ttl is set when it is granted. Until then the lease is renewed as often as before.
    if (ttl < this.ttl) this.#setTtl(ttl)
    const asked = this.#ask(false, ttl)
    if (ttl !== this.ttl) this.#change = asked
    const failure = await asked
    this.#lease.assertHeld()
    if (failure) throw failure
    return this.#lease.remaining
  }

  /** Called by the heartbeat. A change of the ttl counts as this renewal. A lease that is over stays over. */
  renew(): Promise<LeaseError | undefined> | undefined {
    if (!(this.#lease.remaining > 0)) return undefined
    this.#lease.watchHandle()
    return this.#change ?? this.#ask(true, this.ttl)
  }

  #takeOff(sent: number): Flight {
    const flight = { sent }
    this.#flights.add(flight)
    return flight
  }

  /** A request that was sent at `sent` got no answer. */
  #missed(sent: number, ttl: number, failure: LeaseError | undefined): void {
    this.#unsettledUntil = Math.max(this.#unsettledUntil, sent + LONGEST_REQUEST)
    this.staleRequests.add(sent, ttl, failure)
  }

  #land(flight: Flight): void {
    this.#change = undefined
    this.#flights.delete(flight)
    this.#landed?.resolve()
    this.#landed = undefined
  }

  /** Sends a renewal. Resolves to the error if it failed. Renewals in flight together must ask for the same ttl. */
  async #ask(background: boolean, ttl: number): Promise<LeaseError | undefined> {
    const { clock, store, statistics } = this.#core
    const lease = this.#lease
    const deadline = this.#deadline
    const claim = ttl === this.ttl ? this.claim : { ...this.claim, ttl }
    const sent = clock.now()
    const before = deadline.at
    if (!deadline.isWatched) deadline.watch()
    deadline.shorten(sent + ttl - margin(ttl)) // if the answer is lost, the server may have set this ttl
    const flight = this.#takeOff(sent)
    try {
      const grant = await request(clock, requestLimit(this.ttl), signal => store.renew(claim, signal), { background })
      const now = clock.now()
      statistics.answered(lease.handle, sent, now)
      if (lease.loss) return undefined
      if (grant?.token !== lease.token) {
        const isReleased = lease.isReleasing && sent <= this.renewedAt // the release did not wait for this one
        if (!isReleased) lease.lose('gone')
        return undefined
      }
      if (sent < this.renewedAt) return undefined // a later request was answered first
      if (ttl !== this.ttl) this.#setTtl(ttl)
      this.renewedAt = sent
      this.#failure = undefined
      deadline.move(sent + grant.ttl - margin(grant.ttl))
      if (!lease.check() && events.heartbeat.hasSubscribers)
        events.heartbeat.publish({ lease: lease.handle, latency: now - sent, margin: before - now })
      return undefined
    } catch (reason) {
      const error = reason as LeaseError // request() rejects with nothing else when it cannot be cancelled
      this.#missed(sent, ttl, error)
      statistics.failed(lease.handle, sent)
      if (this.renewedAt > sent) return undefined
      this.#failure = error
      if (!lease.check() && events.heartbeat_failed.hasSubscribers)
        events.heartbeat_failed.publish({ lease: lease.handle, error })
      return error
    } finally {
      this.#land(flight)
    }
  }

  #setTtl(ttl: number): void {
    const before = this.ttl
    this.claim = { ...this.claim, ttl }
    this.#lease.handle.ttl = ttl
    if (this.#beat) this.#beat = this.#core.heartbeat.rejoin(this.#beat, before)
  }
}

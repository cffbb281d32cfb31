import { checkText, checkTtl } from '../contract/check.ts'
import { LeaseError, type LeaseErrorCode } from '../contract/errors.ts'
import { events, type LossReason } from '../contract/events.ts'
import type { LeaseEnd } from '../contract/lease.ts'
import type { Entry } from '../contract/list.ts'
import { request } from '../contract/request.ts'
import { Sequence } from '../contract/sequence.ts'
import type { Claim } from '../contract/store.ts'
import { LAST_WITHDRAWAL, LONGEST_TRY, margin, requestLimit } from '../contract/time.ts'
import type { Acquired } from './acquisition.ts'
import type { HoldOptions, LeaseCore, ListedLease } from './core.ts'
import { Deadline } from './deadline.ts'
import { Ending, within } from './ending.ts'
import type { Renewable } from './heartbeat.ts'
import { HandleRef, type LeaseHandle } from './lease-handle.ts'
import { StaleRequests } from './stale-requests.ts'
import { withdraw } from './withdraw.ts'

const GONE = 'is held no more: it ran out at the store, or was broken'

/** The lease as the core sees it. */
export class HeldLease implements ListedLease, Renewable {
  readonly name: string
  readonly owner: string
  readonly token: bigint
  readonly heldSince: number
  renewedAt: number
  readonly #core: LeaseCore
  readonly #controller = new AbortController()
  readonly #staleRequests = new StaleRequests()
  #claim: Claim
  readonly #deadline: Deadline
  /** May an unanswered request still arrive at the store? */
  #unsettled: boolean
  #error: LeaseError | undefined
  #mayBeHeld = false // may the store still hold the name after the loss?
  /** Resolves when no renewal is in flight. */
  #renewing: Promise<unknown> | undefined
  #extending = 0 // calls of `extend` that have not settled
  readonly #annotations = new Sequence()
  #releasing: Promise<LeaseEnd> | undefined
  readonly #ending = new Ending()
  readonly #handle: HandleRef
  readonly #entry: Entry<ListedLease>
  /** Until the lease is no longer renewed. */
  #beat: Entry<Renewable> | undefined
  readonly #stopListening: (() => void) | undefined

  constructor(
    core: LeaseCore,
    claim: Claim,
    { grant, sent, unsettled, waited }: Acquired,
    options: HoldOptions,
    deadline: Deadline = new Deadline(core.clock, grant, sent, options),
  ) {
    this.#core = core
    this.#claim = { ...claim, token: grant.token }
    this.name = claim.name
    this.owner = claim.owner
    this.token = grant.token
    this.heldSince = sent
    this.renewedAt = sent
    this.#deadline = deadline
    deadline.onTime = () => {
      if (!this.#check() && this.#beat) this.#handle.watch() // it was renewed meanwhile
    }
    this.#unsettled = unsettled
    this.#handle = new HandleRef(this, options.background)
    this.#entry = core.leases.add(this)
    if (options.heartbeat) this.#beat = core.heartbeat.join(this)
    // Most leases are released before they need a timer: the first beat comes within a third of the ttl from here.
    const isSoon = waited <= claim.ttl / 3 && grant.ttl >= claim.ttl && options.maxHold === undefined
    if (!this.#beat || !isSoon || !options.background) deadline.watch()
    this.#stopListening = core.store.onLoss?.(claim, () => {
      if (!this.#check() && !this.#releasing) this.#lose('gone')
    })
  }

  /** The user's handle. */
  get handle(): LeaseHandle {
    return this.#handle.get()
  }

  get ttl(): number {
    return this.#claim.ttl
  }

  get signal(): AbortSignal {
    this.#check()
    return this.#controller.signal
  }

  get remaining(): number {
    if (this.#releasing || this.#check()) return 0
    return this.#deadline.remaining
  }

  get ended(): Promise<LeaseEnd> {
    this.#check()
    this.#handle.keep() // a program that waits for the end has not lost the lease
    return this.#ending.promise
  }

  assertHeld(): void {
    const lost = this.#check()
    if (lost) throw lost
    if (this.#releasing) throw this.#fault('CLOSED', 'was released')
  }

  async extend(ttl: number = this.ttl): Promise<number> {
    checkTtl(ttl, this.#core.store)
    const { clock } = this.#core
    for (;;) {
      if (ttl > this.ttl) await this.#staleRequests.over(clock) // a stale renewal would set the shorter ttl again
      this.#extending += 1
      try {
        while (this.#renewing) await this.#renewing
        this.assertHeld()
        if (ttl > this.ttl && this.#staleRequests.arePossible(clock)) continue // a renewal has just failed
        // A longer ttl is set when it is granted. Until then the lease is renewed as often as before.
        if (ttl < this.ttl) this.#setTtl(ttl)
        const failure = await this.#renew(false, ttl)
        this.assertHeld()
        if (failure) throw failure
        return this.remaining
      } finally {
        this.#extending -= 1
      }
    }
  }

  annotate(note: string): Promise<void> {
    return this.#annotations.run(() => this.#annotate(note))
  }

  /** Called by the heartbeat. An extension in flight counts as this renewal. A lease that is over stays over. */
  async renew(): Promise<boolean> {
    if (this.#extending > 0 || this.#releasing || this.#check()) return true
    this.#handle.watch()
    return (await this.#renew(true, this.ttl)) === undefined
  }

  release(): Promise<LeaseEnd> {
    const lost = this.#check() // first: a listener of the loss may release
    if (this.#releasing) return this.#releasing
    if (!lost) this.#stop()
    const withdrawal = this.#withdraw()
    this.#core.inBackground(withdrawal)
    this.#releasing = this.#answer(withdrawal)
    this.#end()
    if (!lost && events.release_began.hasSubscribers) events.release_began.publish({ lease: this.handle })
    return this.#releasing
  }

  /** Releases, and answers why the lease was lost if it was; never rejects. */
  async end(): Promise<LeaseError | undefined> {
    return (await this.release()) === 'lost' ? this.#error : undefined
  }

  /** Aborts the signal of a held lease: the work should end before the lease is released. */
  abort(reason: unknown): void {
    this.#controller.abort(reason)
  }

  stopRenewing(): void {
    if (this.#check() || this.#releasing) return
    this.#leaveHeartbeat()
    this.#handle.keep()
    this.#deadline.watch()
  }

  /** A renewal that was sent elsewhere may still arrive. */
  expectStaleRenewal(): void {
    this.#unsettled = true
    this.#staleRequests.add(this.#core.clock.now(), this.ttl)
  }

  async #annotate(note: string): Promise<void> {
    checkText(note, 'note')
    const { clock, store } = this.#core
    await this.#staleRequests.over(clock)
    this.assertHeld()
    const claim = { ...this.#claim, note }
    const isHeld = await this.#staleRequests.request(clock, claim.ttl, signal => store.annotate(claim, signal))
    if (!isHeld && !this.#check() && !this.#releasing) this.#lose('gone')
    this.assertHeld()
    this.#claim = { ...this.#claim, note }
  }

  /** The withdrawal continues in the background if it takes too long for the caller. */
  async #answer(withdrawal: Promise<LeaseEnd>): Promise<LeaseEnd> {
    const { clock } = this.#core
    if (!this.#error) return this.#ending.settle(await within(clock, LONGEST_TRY, withdrawal, 'unknown'))
    return this.#mayBeHeld ? within(clock, LAST_WITHDRAWAL, withdrawal, 'lost') : 'lost'
  }

  async #withdraw(): Promise<LeaseEnd> {
    if (this.#renewing) await this.#renewing
    const lease = this.#error ? undefined : this.handle
    const answer = await withdraw(this.#core, this.#claim, this.#unsettled, lease, this.#deadline.at)
    if (answer === 'gone' && !this.#error) this.#lose('gone', 'was gone when it was released')
    if (this.#error || answer === 'gone') return 'lost'
    if (answer === 'released' && events.lease_released.hasSubscribers)
      events.lease_released.publish({ lease: this.handle })
    return answer
  }

  /** Returns the error if it failed; never rejects. Renewals that are in flight together must ask for the same ttl. */
  #renew(background: boolean, ttl: number): Promise<LeaseError | undefined> {
    const renewal = this.#askToRenew(background, ttl)
    this.#whileRenewing(renewal)
    return renewal
  }

  #whileRenewing(renewal: Promise<unknown>): void {
    const before = this.#renewing
    const all = renewal.then(async () => {
      await before
      if (this.#renewing === all) this.#renewing = undefined
    })
    this.#renewing = all
  }

  async #askToRenew(background: boolean, ttl: number): Promise<LeaseError | undefined> {
    const { clock, store, statistics } = this.#core
    const claim = { ...this.#claim, ttl }
    const sent = clock.now()
    const before = this.#deadline.at
    if (!this.#deadline.isWatched) this.#deadline.watch()
    this.#deadline.shorten(sent + ttl - margin(ttl)) // if the answer is lost, the server may have set this ttl
    try {
      const grant = await request(clock, requestLimit(this.ttl), signal => store.renew(claim, signal), { background })
      const now = clock.now()
      statistics.answered(this.handle, sent, now)
      if (this.#error) return undefined
      if (grant?.token !== this.token) {
        this.#lose('gone')
        return undefined
      }
      if (sent < this.renewedAt) return undefined // a later request was answered first
      if (ttl !== this.ttl) this.#setTtl(ttl)
      this.renewedAt = sent
      this.#deadline.move(sent + grant.ttl - margin(grant.ttl))
      if (!this.#check() && events.heartbeat.hasSubscribers)
        events.heartbeat.publish({ lease: this.handle, latency: now - sent, margin: before - now })
      return undefined
    } catch (reason) {
      const error = reason as LeaseError // request() rejects with nothing else when it cannot be cancelled
      this.#unsettled = true
      this.#staleRequests.add(sent, ttl)
      statistics.failed(this.handle, sent)
      if (this.renewedAt > sent) return undefined
      if (!this.#check() && events.heartbeat_failed.hasSubscribers)
        events.heartbeat_failed.publish({ lease: this.handle, error })
      return error
    }
  }

  #setTtl(ttl: number): void {
    const before = this.ttl
    this.#claim = { ...this.#claim, ttl }
    this.handle.ttl = ttl
    if (this.#beat) this.#beat = this.#core.heartbeat.rejoin(this.#beat, before)
  }

  /** Why the lease is lost. Detects a loss at once, without waiting for a timer. */
  #check(): LeaseError | undefined {
    if (this.#error || this.#releasing) return this.#error
    const passed = this.#deadline.passed(this.#core.clock.now())
    return passed && this.#lose(passed)
  }

  #lose(reason: LossReason, what: string = this.#explain(reason)): LeaseError {
    const error = this.#fault(reason === 'max_hold' ? 'MAX_HOLD' : 'LEASE_LOST', what)
    this.#error = error
    this.#stop()
    // Otherwise the store did not answer, and a release would wait for it in vain.
    const isWell = !this.#unsettled && !this.#renewing
    this.#mayBeHeld = reason === 'max_hold' || (reason === 'expired' && isWell)
    this.#end()
    this.#controller.abort(error)
    if (events.lease_lost.hasSubscribers) events.lease_lost.publish({ lease: this.handle, reason, error })
    this.#ending.settle('lost')
    return error
  }

  #explain(reason: LossReason): string {
    if (reason === 'gone') return GONE
    return reason === 'expired' ? 'was not renewed in time' : `was held for ${this.#deadline.maxHold} ms, its maxHold`
  }

  #stop(): void {
    this.#leaveHeartbeat()
    this.#handle.keep()
    this.#stopListening?.()
    this.#staleRequests.end()
    this.#deadline.end()
  }

  #leaveHeartbeat(): void {
    if (!this.#beat) return
    const left = this.#core.heartbeat.leave(this.#beat)
    if (left) this.#whileRenewing(left)
    this.#beat = undefined
  }

  #end(): void {
    if (this.#core.leases.remove(this.#entry)) this.#core.onEnd()
  }

  #fault(code: LeaseErrorCode, what: string): LeaseError {
    return new LeaseError(code, `the lease ${JSON.stringify(this.name)} ${what}`, { lease: this.name })
  }
}

import { checkText, checkTtl } from '../contract/check.ts'
import { LeaseError, type LeaseErrorCode } from '../contract/errors.ts'
import { events, type LossReason } from '../contract/events.ts'
import type { LeaseEnd } from '../contract/lease.ts'
import type { Entry } from '../contract/list.ts'
import { request } from '../contract/request.ts'
import { Sequence } from '../contract/sequence.ts'
import type { Claim } from '../contract/store.ts'
import { LAST_WITHDRAWAL, LONGEST_TRY, margin, requestLimit } from '../contract/time.ts'
import type { Acquired } from './acquire.ts'
import type { Core, HoldOptions } from './core.ts'
import { Deadline } from './deadline.ts'
import { Ending, within } from './ending.ts'
import type { Renewable } from './heartbeat.ts'
import { LateCopies } from './late-copies.ts'
import { HandleRef, type LeaseHandle } from './lease-handle.ts'
import type { Renewals } from './renewals.ts'
import { withdraw } from './withdraw.ts'

const GONE = 'is held no more: it ran out at the store, or was broken'

/** The lease as the core sees it. */
export class HeldLease {
  readonly name: string
  readonly owner: string
  readonly token: bigint
  readonly heldSince: number // the clock's time before the granted request left
  renewedAt: number
  readonly #core: Core
  readonly #maxHold: number | undefined
  #beats: boolean
  #renewals: Renewals | undefined
  readonly #controller = new AbortController()
  readonly #lateCopies = new LateCopies()
  #claim: Claim
  readonly #deadline: Deadline
  #unsettled: boolean
  #error: LeaseError | undefined
  #mayBeHeld = false // may the store still hold the name after the loss?
  /** Until all renewals that are under way are over. */
  #renewing: Promise<unknown> | undefined
  #extending = 0 // calls of `extend` that have not settled
  readonly #annotations = new Sequence()
  #releasing: Promise<LeaseEnd> | undefined
  readonly #ending = new Ending()
  readonly #handle: HandleRef
  readonly #entry: Entry<HeldLease>
  #beat: Entry<Renewable> | undefined
  readonly #stopListening: (() => void) | undefined

  constructor(core: Core, claim: Claim, acquired: Acquired, options: HoldOptions) {
    const { grant, sent, unsettled, waited } = acquired
    this.#core = core
    this.#claim = { ...claim, token: grant.token }
    this.#maxHold = options.maxHold
    this.#beats = options.heartbeat
    this.#renewals = options.renewals
    this.name = claim.name
    this.owner = claim.owner
    this.token = grant.token
    this.heldSince = sent
    this.renewedAt = sent
    const endsAt = sent + (options.maxHold ?? Number.POSITIVE_INFINITY)
    const deadline = sent + grant.ttl - margin(grant.ttl)
    this.#deadline = new Deadline(core.clock, deadline, endsAt, options.background, () => this.#check())
    this.#unsettled = unsettled
    this.#handle = new HandleRef(this, options.background)
    this.#entry = core.leases.add(this)
    if (this.#beats) this.#beat = core.heartbeat.join(this)
    // Most leases are released before they need a timer: the first beat comes within a third of the ttl from here.
    const isSoon = waited <= claim.ttl / 3 && grant.ttl >= claim.ttl && options.maxHold === undefined
    if (!this.#beats || !isSoon || !options.background) this.#deadline.watch()
    this.#renewals?.begin(this)
    this.#stopListening = core.store.onLoss?.(claim, () => {
      // What the heartbeat's thread renews it tells of itself.
      if (!this.#renewals && !this.#check() && !this.#releasing) this.#lose('gone', GONE)
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
      if (ttl > this.ttl) await this.#lateCopies.over(clock) // a late copy of a renewal would set the shorter ttl again
      this.#extending += 1
      try {
        while (this.#renewing) await this.#renewing
        this.assertHeld()
        if (ttl > this.ttl && this.#lateCopies.arePossible(clock)) continue // of one that failed just now
        // The longer term only once it is granted: until then the lease must be renewed as often as before.
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

  /** For the heartbeat: an extension under way counts as this one, and what is lost or released stays so. */
  async renew(): Promise<boolean> {
    if (this.#extending > 0 || this.#releasing || this.#check()) return true
    this.#handle.watch()
    return (await this.#renew(true, this.ttl)) === undefined
  }

  release(): Promise<LeaseEnd> {
    const lost = this.#check() // first: whoever it tells of a loss may well release
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

  /** Aborts the signal although the lease is held: the work should end, then the lease is released. */
  abort(reason: unknown): void {
    this.#controller.abort(reason)
  }

  stopRenewing(): void {
    if (this.#check() || this.#releasing) return
    this.#beats = false
    this.#leaveHeartbeat()
    this.#handle.keep()
    this.#whileRenewing(this.#endRenewals())
    this.#renewals = undefined
    this.#deadline.watch()
  }

  /** For the heartbeat's thread: a store that restores what a server has lost restores this note. */
  noteChanged(note: string): void {
    this.#claim = { ...this.#claim, note }
  }

  /** What renewed it has failed: from now on the heartbeat of this thread does, beginning now. */
  takeOver(error: LeaseError): void {
    if (this.#check() || this.#releasing) return
    this.#renewals = undefined
    this.#doubt()
    this.#beats = true
    this.#beat = this.#core.heartbeat.join(this)
    void this.renew()
    if (events.heartbeat_failed.hasSubscribers) events.heartbeat_failed.publish({ lease: this.handle, error })
  }

  async #annotate(note: string): Promise<void> {
    checkText(note, 'note')
    const { clock, store } = this.#core
    await this.#lateCopies.over(clock)
    this.assertHeld()
    const claim = { ...this.#claim, note }
    const isHeld = await this.#lateCopies.request(clock, claim.ttl, signal => store.annotate(claim, signal))
    if (!isHeld && !this.#check() && !this.#releasing) this.#lose('gone', GONE)
    this.assertHeld()
    this.noteChanged(note)
    this.#renewals?.annotated(note)
  }

  /** The withdrawal continues in the background if it takes too long for the caller. */
  async #answer(withdrawal: Promise<LeaseEnd>): Promise<LeaseEnd> {
    const { clock } = this.#core
    if (!this.#error) return this.#ending.settle(await within(clock, LONGEST_TRY, withdrawal, 'unknown'))
    return this.#mayBeHeld ? within(clock, LAST_WITHDRAWAL, withdrawal, 'lost') : 'lost'
  }

  async #withdraw(): Promise<LeaseEnd> {
    if (this.#renewing || this.#renewals) {
      await this.#renewing
      await this.#endRenewals()
    }
    const lease = this.#error ? undefined : this.handle
    const answer = await withdraw(this.#core, this.#claim, this.#unsettled, lease, this.#deadline.at)
    if (answer === 'gone' && !this.#error) this.#lose('gone', 'was gone when it was released')
    if (this.#error || answer === 'gone') return 'lost'
    if (answer === 'released' && events.lease_released.hasSubscribers)
      events.lease_released.publish({ lease: this.handle })
    return answer
  }

  async #endRenewals(): Promise<void> {
    if (await this.#renewals?.stop()) this.#doubt()
  }

  /** Renewals that were made elsewhere may still arrive. */
  #doubt(): void {
    this.#unsettled = true
    this.#lateCopies.add(this.#core.clock.now(), this.ttl)
  }

  /** Answers why it failed; rejects never. Only renewals for one and the same ttl may be under way together. */
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
    const { clock } = this.#core
    const store = this.#renewals ?? this.#core.store
    const pulse = this.#renewals ? undefined : this.#core.pulse
    const claim = { ...this.#claim, ttl }
    const sent = clock.now()
    const before = this.#deadline.at
    if (!this.#deadline.isWatched) this.#deadline.watch()
    // Should the answer be lost, the server may have set this ttl: what is shorter counts from now on.
    this.#deadline.move(Math.min(before, sent + claim.ttl - margin(claim.ttl)))
    try {
      const grant = await request(clock, requestLimit(this.ttl), signal => store.renew(claim, signal), { background })
      const now = clock.now()
      pulse?.answered(this.handle, sent, now)
      if (this.#error) return undefined
      if (grant?.token !== this.token) {
        this.#lose('gone', GONE)
        return undefined
      }
      if (sent < this.renewedAt) return undefined // a later one was answered before
      if (ttl !== this.ttl) this.#setTtl(ttl)
      if (!this.#renewals) {
        this.renewedAt = sent
        this.#deadline.move(sent + grant.ttl - margin(grant.ttl))
      }
      if (!this.#check() && events.heartbeat.hasSubscribers)
        events.heartbeat.publish({ lease: this.handle, latency: now - sent, margin: before - now })
      return undefined
    } catch (reason) {
      const error = reason as LeaseError // request() rejects with nothing else when it cannot be cancelled
      this.#unsettled = true
      this.#lateCopies.add(sent, ttl)
      pulse?.failed(this.handle, sent)
      if (this.renewedAt > sent) return undefined
      if (!this.#check() && events.heartbeat_failed.hasSubscribers)
        events.heartbeat_failed.publish({ lease: this.handle, error })
      return error
    }
  }

  #setTtl(ttl: number): void {
    this.#leaveHeartbeat()
    this.#claim = { ...this.#claim, ttl }
    this.handle.ttl = ttl
    if (this.#beats && !this.#releasing) this.#beat = this.#core.heartbeat.join(this)
  }

  /** Why the lease is lost, found out now if need be. */
  #check(): LeaseError | undefined {
    if (this.#error || this.#releasing) return this.#error
    const now = this.#core.clock.now()
    const remaining = this.#renewals?.look()
    if (remaining === Number.NEGATIVE_INFINITY) return this.#lose('gone', GONE)
    if (remaining !== undefined) {
      this.#handle.watch()
      this.#deadline.move(now + remaining)
    }
    const passed = this.#deadline.passed(now)
    if (passed === 'max_hold') return this.#lose(passed, `was held for ${this.#maxHold} ms, its maxHold`)
    return passed && this.#lose(passed, 'was not renewed in time')
  }

  #lose(reason: LossReason, what: string): LeaseError {
    const error = this.#fault(reason === 'max_hold' ? 'MAX_HOLD' : 'LEASE_LOST', what)
    this.#error = error
    // Otherwise the store did not answer, and a release would wait for it in vain.
    const isWell = !this.#unsettled && !this.#renewing && !this.#renewals
    this.#mayBeHeld = reason === 'max_hold' || (reason === 'expired' && isWell)
    this.#stop()
    this.#end()
    this.#controller.abort(error)
    if (events.lease_lost.hasSubscribers) events.lease_lost.publish({ lease: this.handle, reason, error })
    this.#ending.settle('lost')
    return error
  }

  #stop(): void {
    this.#leaveHeartbeat()
    this.#handle.keep()
    void this.#renewals?.stop()
    this.#stopListening?.()
    this.#lateCopies.end()
    this.#deadline.end()
  }

  #leaveHeartbeat(): void {
    if (this.#beat) this.#core.heartbeat.leave(this.#beat)
    this.#beat = undefined
  }

  #end(): void {
    if (this.#core.leases.remove(this.#entry)) this.#core.onEnd(this)
  }

  #fault(code: LeaseErrorCode, what: string): LeaseError {
    return new LeaseError(code, `the lease ${JSON.stringify(this.name)} ${what}`, { lease: this.name })
  }
}

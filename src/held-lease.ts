import { inspect } from 'node:util'
import type { Acquired } from './acquire.ts'
import { checkText, checkTtl } from './check.ts'
import type { Core, HoldOptions } from './core.ts'
import { LeaseError, type LeaseErrorCode } from './errors.ts'
import { events, type LossReason } from './events.ts'
import type { Renewable } from './heartbeat.ts'
import { LateCopies } from './late-copies.ts'
import type { Lease } from './lease.ts'
import type { Entry } from './list.ts'
import type { Renewals } from './renewals.ts'
import { request } from './request.ts'
import type { Claim } from './store.ts'
import { LONGEST_REQUEST, margin, requestLimit } from './time.ts'
import { withdraw } from './withdraw.ts'

const GONE = 'is held no more: it ran out at the store, or was broken'

/** The lease as the core sees it. */
export class HeldLease implements Lease {
  readonly token: bigint
  readonly heldSince: number // the clock's time before the granted request left
  readonly #core: Core
  readonly #options: HoldOptions
  #beats: boolean
  #renewals: Renewals | undefined
  readonly #controller = new AbortController()
  readonly #lateCopies = new LateCopies()
  readonly #endsAt: number
  #claim: Claim
  #renewedAt: number
  #deadline: number
  #unsettled: boolean
  #error: LeaseError | undefined
  /** Until all renewals that are under way are over. */
  #renewing: Promise<unknown> | undefined
  /** Calls of `extend` that have not settled. */
  #extending = 0
  /** Until the notes that were asked for so far are written, or not. */
  #annotating: Promise<unknown> = Promise.resolve()
  #releasing: Promise<void> | undefined
  #stopTimer: (() => void) | undefined
  readonly #entry: Entry<HeldLease>
  #beat: Entry<Renewable> | undefined
  readonly #stopListening: (() => void) | undefined

  constructor(core: Core, claim: Claim, acquired: Acquired, options: HoldOptions) {
    const { grant, sent, unsettled, waited } = acquired
    this.#core = core
    this.#claim = { ...claim, token: grant.token }
    this.#options = options
    this.#beats = options.heartbeat
    this.#renewals = options.renewals
    this.token = grant.token
    this.heldSince = sent
    this.#renewedAt = sent
    this.#deadline = sent + grant.ttl - margin(grant.ttl)
    this.#endsAt = sent + (options.maxHold ?? Number.POSITIVE_INFINITY)
    this.#unsettled = unsettled
    this.#entry = core.leases.add(this)
    if (this.#beats) this.#beat = core.heartbeat.join(this)
    // Most leases are given back before they need a timer: the first beat comes within a third of the ttl from here.
    const { ttl } = claim
    const beatIsSooner = this.#beats && waited <= ttl / 3 && grant.ttl >= ttl && options.maxHold === undefined
    if (!beatIsSooner || !options.background) this.#watchDeadline()
    this.#renewals?.begin(this)
    this.#stopListening = core.store.onLoss?.(claim, () => {
      // What the heartbeat's thread renews it tells of itself.
      if (!this.#renewals && !this.#check() && !this.#releasing) this.#lose('gone', GONE)
    })
  }

  get name(): string {
    return this.#claim.name
  }

  get owner(): string {
    return this.#claim.owner
  }

  get ttl(): number {
    return this.#claim.ttl
  }

  get renewedAt(): number {
    return this.#renewedAt
  }

  get signal(): AbortSignal {
    this.#check()
    return this.#controller.signal
  }

  get remaining(): number {
    if (this.#releasing || this.#check()) return 0
    return Math.min(this.#deadline, this.#endsAt) - this.#core.clock.now()
  }

  assertHeld(): void {
    const lost = this.#check()
    if (lost) throw lost
    if (this.#releasing) throw this.#fault('CLOSED', 'was released')
  }

  async extend(ttl: number = this.ttl): Promise<number> {
    checkTtl(ttl, this.#core.store)
    if (ttl > this.ttl) await this.#lateCopies.over(this.#core.clock) // a late copy of a renewal would set the shorter ttl again
    this.#extending += 1
    try {
      while (this.#renewing) await this.#renewing
      this.assertHeld()
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

  annotate(note: string): Promise<void> {
    const annotation = this.#annotating.then(() => this.#annotate(note))
    this.#annotating = annotation.catch(() => {})
    return annotation
  }

  /** For the heartbeat: an extension under way counts as this one, and what is lost or released stays so. */
  async renew(): Promise<boolean> {
    if (this.#extending > 0 || this.#releasing || this.#check()) return true
    return (await this.#renew(true, this.ttl)) === undefined
  }

  release(): Promise<void> {
    const lost = this.#check() // first: whoever it tells of a loss may well release
    if (this.#releasing) return this.#releasing
    this.#releasing = this.#release()
    if (!lost && events.release_began.hasSubscribers) events.release_began.publish({ lease: this })
    return this.#releasing
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.end()
  }

  /** Releases, and answers why the lease was lost if it was; never rejects. */
  async end(): Promise<LeaseError | undefined> {
    try {
      await this.release()
    } catch {
      // Told by the event release_failed or lease_lost: to throw would hide the result of the work.
    }
    return this.#error
  }

  toJSON(): Record<string, unknown> {
    const { name, owner, ttl, remaining } = this
    return { name, token: this.token.toString(), owner, ttl, remaining: Math.round(remaining) }
  }

  /** Aborts the signal although the lease is held: the work should end, then the lease is released. */
  abort(reason: unknown): void {
    this.#controller.abort(reason)
  }

  /** Ends the renewals of a lease that nobody gave back; its deadline is still told. */
  abandon(): void {
    this.#beats = false
    this.#stop()
    this.#watchDeadline()
  }

  /** For the heartbeat's thread: a store that restores what a server has lost restores this note. */
  noteChanged(note: string): void {
    this.#claim = { ...this.#claim, note }
  }

  /** What renewed it has failed: from now on the heartbeat of this thread does, beginning now. */
  takeOver(error: LeaseError): void {
    if (this.#check() || this.#releasing) return
    this.#renewals = undefined
    this.#unsettled = true
    this.#beats = true
    this.#beat = this.#core.heartbeat.join(this)
    void this.renew()
    if (events.heartbeat_failed.hasSubscribers) events.heartbeat_failed.publish({ lease: this, error })
  }

  async #annotate(note: string): Promise<void> {
    checkText(note, 'note')
    const { clock, store } = this.#core
    await this.#lateCopies.over(clock)
    this.assertHeld()
    const claim = { ...this.#claim, note }
    const sent = clock.now()
    try {
      const isHeld = await request(clock, requestLimit(claim.ttl), signal => store.annotate(claim, signal))
      if (!isHeld && !this.#check() && !this.#releasing) this.#lose('gone', GONE)
    } catch (error) {
      this.#lateCopies.add(sent, claim.ttl)
      throw error
    }
    this.assertHeld()
    this.noteChanged(note)
    this.#renewals?.annotated(note)
  }

  async #release(): Promise<void> {
    this.#stop()
    // A renewal keeps no process alive, but whoever waits for a release must see it settle.
    const stopped = this.#renewals?.stop()
    if (this.#renewing || stopped) {
      const stopTimer = this.#core.clock.after(LONGEST_REQUEST, () => {})
      await this.#renewing
      if (await stopped) this.#unsettled = true
      stopTimer()
    }
    try {
      const answer = await withdraw(this.#core, this.#claim, this.#unsettled, this)
      if (answer === 'gone' && !this.#error) this.#lose('gone', 'was gone when it was released')
    } catch (error) {
      throw this.#error ?? error
    } finally {
      this.#end()
    }
    if (this.#error) throw this.#error
    if (events.lease_released.hasSubscribers) events.lease_released.publish({ lease: this })
  }

  /** Answers why it failed; rejects never. Only renewals for one and the same ttl may be under way together. */
  #renew(background: boolean, ttl: number): Promise<LeaseError | undefined> {
    const renewal = this.#askToRenew(background, ttl)
    const before = this.#renewing
    const all = renewal.then(async () => {
      await before
      if (this.#renewing === all) this.#renewing = undefined
    })
    this.#renewing = all
    return renewal
  }

  async #askToRenew(background: boolean, ttl: number): Promise<LeaseError | undefined> {
    const { clock } = this.#core
    const store = this.#renewals ?? this.#core.store
    const pulse = this.#renewals ? undefined : this.#core.pulse
    const claim = { ...this.#claim, ttl }
    const sent = clock.now()
    const before = this.#deadline
    if (!this.#stopTimer) this.#watchDeadline()
    // Should the answer be lost, the server may have set this ttl: what is shorter counts from now on.
    this.#moveDeadline(Math.min(before, sent + claim.ttl - margin(claim.ttl)))
    try {
      const grant = await request(clock, requestLimit(this.ttl), signal => store.renew(claim, signal), { background })
      const now = clock.now()
      pulse?.answered(this, sent, now)
      if (this.#error) return undefined
      if (grant?.token !== this.token) {
        this.#lose('gone', GONE)
        return undefined
      }
      if (sent < this.#renewedAt) return undefined // a later one was answered before
      if (ttl !== this.ttl) this.#setTtl(ttl)
      if (!this.#renewals) {
        this.#renewedAt = sent
        this.#moveDeadline(sent + grant.ttl - margin(grant.ttl))
      }
      if (!this.#check() && events.heartbeat.hasSubscribers)
        events.heartbeat.publish({ lease: this, latency: now - sent, margin: before - now })
      return undefined
    } catch (reason) {
      const error = reason as LeaseError // request() rejects with nothing else when it cannot be cancelled
      this.#unsettled = true
      this.#lateCopies.add(sent, ttl)
      pulse?.failed(this, sent)
      if (this.#renewedAt > sent) return undefined
      if (!this.#check() && events.heartbeat_failed.hasSubscribers)
        events.heartbeat_failed.publish({ lease: this, error })
      return error
    }
  }

  #setTtl(ttl: number): void {
    this.#leaveHeartbeat()
    this.#claim = { ...this.#claim, ttl }
    if (this.#beats && !this.#releasing) this.#beat = this.#core.heartbeat.join(this)
  }

  #moveDeadline(deadline: number): void {
    const sooner = deadline < this.#deadline
    this.#deadline = deadline
    if (sooner) this.#watchDeadline()
  }

  /** One timer that is set anew when it fires too early: a renewal costs none. */
  #watchDeadline(): void {
    if (this.#error || this.#releasing) return
    const { clock } = this.#core
    this.#stopTimer?.()
    const delay = Math.min(this.#deadline, this.#endsAt) - clock.now()
    this.#stopTimer = clock.after(delay, () => this.#check() ?? this.#watchDeadline(), this.#options.background)
  }

  /** Why the lease is lost, found out now if need be. */
  #check(): LeaseError | undefined {
    if (this.#error || this.#releasing) return this.#error
    const now = this.#core.clock.now()
    const remaining = this.#renewals?.look()
    if (remaining === Number.NEGATIVE_INFINITY) return this.#lose('gone', GONE)
    if (remaining !== undefined) this.#moveDeadline(now + remaining)
    if (now >= this.#endsAt && this.#endsAt <= this.#deadline)
      return this.#lose('max_hold', `was held for ${this.#options.maxHold} ms, its maxHold`)
    if (!(now < this.#deadline)) return this.#lose('expired', 'was not renewed in time')
    return undefined
  }

  #lose(reason: LossReason, what: string): LeaseError {
    const error = this.#fault(reason === 'max_hold' ? 'MAX_HOLD' : 'LEASE_LOST', what)
    this.#error = error
    this.#stop()
    this.#end()
    this.#controller.abort(error)
    if (events.lease_lost.hasSubscribers) events.lease_lost.publish({ lease: this, reason, error })
    return error
  }

  #stop(): void {
    this.#leaveHeartbeat()
    void this.#renewals?.stop()
    this.#stopListening?.()
    this.#lateCopies.end()
    this.#stopTimer?.()
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

// What people see when they print a lease: all but the token is behind accessors and would be missing.
Object.defineProperty(HeldLease.prototype, inspect.custom, { value: HeldLease.prototype.toJSON })

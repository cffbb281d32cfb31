import { checkText } from '../contract/check.ts'
import { LeaseError, type LeaseErrorCode } from '../contract/errors.ts'
import { events } from '../contract/events.ts'
import type { LeaseEnd } from '../contract/lease.ts'
import type { LossReason } from '../contract/lease-events.ts'
import type { Entry } from '../contract/list.ts'
import { within } from '../contract/request.ts'
import { Sequence } from '../contract/sequence.ts'
import type { Claim } from '../contract/store.ts'
import { LAST_WITHDRAWAL, LONGEST_TRY } from '../contract/time.ts'
import type { Acquired } from './acquisition.ts'
import type { LeaseCore, ListedLease } from './core.ts'
import { Deadline } from './deadline.ts'
import { Held } from './held.ts'
import { HandleRef, type LeaseHandle } from './lease-handle.ts'
import type { HoldTerms } from './options.ts'
import { Renewals } from './renewals.ts'
import { withdraw } from './withdraw.ts'

const FIRST_SLOT: readonly number[] = [0]

const unknown = (): LeaseEnd => 'unknown'

/** Several leases that end together. */
export interface LeaseGroup {
  /** The error of the first lease that was lost. */
  readonly loss: LeaseError | undefined
  /** Called when one of the leases was aborted, such as by `close()`. */
  abort(reason: unknown): void
  /** Called when one of the leases was lost. */
  lose(error: LeaseError): void
}

/** The lease as the core sees it. */
export class HeldLease extends Held implements ListedLease {
  readonly name: string
  readonly owner: string
  readonly token: bigint
  readonly limit: number | undefined
  readonly slots: readonly number[]
  readonly heldSince: number
  /** Did a call return the lease? False: work runs under it. */
  readonly isHandedOut: boolean
  /** Was it let run out by `stopRenewing`? */
  runsOut = false
  readonly renewals: Renewals
  group: LeaseGroup | undefined
  lossReason: LossReason | undefined
  readonly #core: LeaseCore
  readonly #deadline: Deadline
  #mayBeHeld = false // may the store still hold the name after the loss?
  readonly #annotations = new Sequence()
  readonly #handle: HandleRef
  readonly #entry: Entry<ListedLease>
  readonly #stopListening: (() => void) | undefined

  constructor(
    core: LeaseCore,
    claim: Claim,
    acquired: Acquired,
    terms: HoldTerms,
    deadline: Deadline = new Deadline(core.clock, acquired.grant, acquired.sent, terms),
  ) {
    super()
    const { grant, sent, waited } = acquired
    this.#core = core
    this.name = claim.name
    this.owner = claim.owner
    this.token = grant.token
    this.limit = claim.limit
    this.slots = grant.slots ?? FIRST_SLOT
    this.heldSince = sent
    this.isHandedOut = terms.background
    this.#deadline = deadline
    deadline.lease = this
    this.#handle = new HandleRef(this, terms.background)
    this.renewals = new Renewals(core, this, claim, acquired, deadline)
    this.#entry = core.leases.add(this)
    if (terms.heartbeat) this.renewals.start()
    // Most leases are released before they need a timer: the first beat comes within a third of the ttl from here.
    const isSoon = waited <= claim.ttl / 3 && grant.ttl >= claim.ttl && terms.maxHold === undefined
    if (!terms.heartbeat || !isSoon || !terms.background) deadline.watch()
    this.#stopListening = core.store.onLoss?.(claim, () => {
      if (!this.check() && !this.releasing) this.lose('gone')
    })
  }

  /** The user's handle. */
  get handle(): LeaseHandle {
    return this.#handle.get()
  }

  get ttl(): number {
    return this.renewals.ttl
  }

  get remaining(): number {
    if (this.releasing || this.check()) return 0
    return this.#deadline.remaining
  }

  assertHeld(): void {
    const lost = this.check()
    if (lost) throw lost
    if (this.releasing) throw this.#fault('CLOSED', 'was released')
  }

  extend(ttl?: number): Promise<number> {
    return this.renewals.extend(ttl)
  }

  annotate(note: string): Promise<void> {
    return this.#annotations.run(() => this.#annotate(note))
  }

  release(): Promise<LeaseEnd> {
    const lost = this.check() // first: a listener of the loss may release
    if (this.releasing) return this.releasing
    if (!lost) this.#stop()
    const withdrawal = this.#withdraw()
    this.#core.inBackground(withdrawal)
    this.releasing = this.#answer(withdrawal)
    this.#end()
    if (!lost && events.release_began.hasSubscribers) events.release_began.publish({ lease: this.handle })
    return this.releasing
  }

  override abort(reason: unknown): void {
    super.abort(reason)
    this.group?.abort(reason)
  }

  stopRenewing(): void {
    if (this.check() || this.releasing) return
    this.runsOut = true
    this.renewals.stop()
    this.#handle.keep()
    this.#deadline.watch()
  }

  /** Sets `maxHold`, which counts from now. */
  limitHold(maxHold: number | undefined): void {
    if (maxHold === undefined) return
    this.#deadline.limit(maxHold)
    this.#core.heartbeat.limit?.(maxHold)
  }

  protected onAwaited(): void {
    this.#handle.keep()
  }

  onTime(): void {
    if (!this.check() && this.renewals.isOn) this.watchHandle() // most probably it was renewed meanwhile
  }

  watchHandle(): void {
    this.#handle.watch()
  }

  get isReleasing(): boolean {
    return this.releasing !== undefined
  }

  check(): LeaseError | undefined {
    if (this.loss || this.releasing) return this.loss
    const passed = this.#deadline.passed(this.#core.clock.now(), this.renewals.isOn)
    return passed && this.lose(passed)
  }

  lose(reason: LossReason, what: string = this.#explain(reason)): LeaseError {
    const error = this.#fault(reason === 'max_hold' ? 'MAX_HOLD' : 'LEASE_LOST', what)
    this.loss = error
    this.lossReason = reason
    this.#stop()
    // Otherwise the store did not answer, and a release would wait for it in vain.
    this.#mayBeHeld = reason === 'max_hold' || (reason !== 'gone' && !this.renewals.unsettled)
    this.#end()
    this.aborting.abort(error)
    if (events.lease_lost.hasSubscribers) events.lease_lost.publish({ lease: this.handle, reason, error })
    this.settle('lost')
    this.group?.lose(error)
    return error
  }

  async #annotate(note: string): Promise<void> {
    checkText(note, 'note')
    const { clock, store } = this.#core
    const { renewals } = this
    await renewals.staleRequests.over(clock)
    this.assertHeld()
    const claim = { ...renewals.claim, note }
    const isHeld = await renewals.staleRequests.request(clock, claim.ttl, signal => store.annotate(claim, signal))
    if (!isHeld && !this.check() && !this.releasing) this.lose('gone')
    this.assertHeld()
    renewals.claim = { ...renewals.claim, note }
  }

  /** Waits for the withdrawal. If it takes too long for the caller, it continues in the background. */
  async #answer(withdrawal: Promise<LeaseEnd>): Promise<LeaseEnd> {
    const error = this.loss
    if (error && !this.#mayBeHeld) return 'lost'
    const limit = error || this.group?.loss ? LAST_WITHDRAWAL : LONGEST_TRY
    return this.settle(await within(this.#core.clock, limit, withdrawal, unknown)) // a loss has settled it before
  }

  async #withdraw(): Promise<LeaseEnd> {
    const { renewals } = this
    while (renewals.unanswered) await renewals.unanswered
    const lease = this.loss ? undefined : this.handle
    const answer = await withdraw(this.#core, renewals.claim, renewals.unsettled, lease, this.#deadline.at)
    if (answer === 'gone' && !this.loss) this.lose('gone', 'was gone when it was released')
    if (this.loss || answer === 'gone') return 'lost'
    if (answer === 'released') {
      if (events.lease_released.hasSubscribers) events.lease_released.publish({ lease: this.handle })
    }
    return answer
  }

  #explain(reason: LossReason): string {
    return {
      expired: `was not renewed in time${this.#whyLate()}`,
      term: 'has no heartbeat, and its term ended',
      gone: 'is no longer held, because it expired at the store or was broken',
      max_hold: `was held for ${this.#deadline.maxHold} ms, its maxHold`,
    }[reason]
  }

  #whyLate(): string {
    const blocked = this.#core.heartbeat.blocked(this.ttl)
    if (blocked === 0) return ''
    return ` (the event loop was blocked for ${(blocked / 1_000).toFixed(1)} s or more, or the process was paused)`
  }

  #stop(): void {
    this.renewals.stop()
    this.#handle.keep()
    this.#stopListening?.()
    this.renewals.staleRequests.end()
    this.#deadline.end()
  }

  #end(): void {
    if (this.#core.leases.remove(this.#entry)) this.#core.onEnd()
  }

  #fault(code: LeaseErrorCode, what: string): LeaseError {
    const kind = this.limit === undefined ? 'lease' : 'permit of'
    return new LeaseError(code, `the ${kind} ${JSON.stringify(this.name)} ${what}`, { leaseName: this.name })
  }
}

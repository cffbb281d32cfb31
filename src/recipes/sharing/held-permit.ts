import { LeaseError, type LeaseErrorCode } from '../../contract/errors.ts'
import { events } from '../../contract/events.ts'
import type { LeaseEnd } from '../../contract/lease.ts'
import type { LossReason } from '../../contract/lease-events.ts'
import { AbortSource } from '../../core/abort-source.ts'
import { Ending } from '../../core/ending.ts'
import type { HeldLease, LeaseGroup } from '../../core/held-lease.ts'
import { HandleRef } from '../../core/lease-handle.ts'
import type { AcquireTerms } from '../../core/options.ts'
import type { Demand } from './demand.ts'
import { type HeldSlot, SlotsHandle } from './permit.ts'

/** A slot and the lease on it. */
export interface SlotLease {
  readonly slot: number
  readonly lease: HeldLease
}

/** The permit as the library sees it: several leases that are held, lost and released as one. */
export class HeldPermit implements LeaseGroup {
  readonly name: string
  readonly owner: string
  readonly token: bigint
  readonly limit: number
  readonly slots: readonly number[]
  readonly heldSlots: readonly HeldSlot[]
  readonly #leases: readonly HeldLease[]
  readonly #abort = new AbortSource()
  readonly #handle: HandleRef
  readonly #maxHold: number | undefined
  readonly #ending = new Ending()
  /** The loss. */
  error: LeaseError | undefined
  #releasing: Promise<LeaseEnd> | undefined
  #released = 0 // slots

  /** `held`: by slot, in ascending order. */
  constructor({ name, slots }: Pick<Demand, 'name' | 'slots'>, held: readonly SlotLease[], terms: AcquireTerms) {
    const { owner, maxHold, background } = terms
    this.name = name
    this.owner = owner
    this.limit = slots.length
    this.slots = held.map(({ slot }) => slot)
    this.heldSlots = held.map(({ slot, lease }) => ({ slot, token: lease.token }))
    this.token = this.heldSlots[0]?.token ?? 0n
    this.#leases = held.map(({ lease }) => lease)
    this.#maxHold = maxHold
    this.#handle = new HandleRef(this, background, () => new SlotsHandle(this, this.heldSlots))
    for (const lease of this.#leases) {
      lease.group = this
      lease.limitHold(maxHold)
    }
  }

  get handle(): SlotsHandle {
    return this.#handle.get() as SlotsHandle
  }

  get ttl(): number {
    return this.#leases[0]?.ttl ?? 0
  }

  get signal(): AbortSignal {
    this.check()
    return this.#abort.signal
  }

  get remaining(): number {
    if (this.#releasing || this.check()) return 0
    return Math.min(...this.#leases.map(({ remaining }) => remaining))
  }

  get ended(): Promise<LeaseEnd> {
    this.check()
    this.#handle.keep()
    return this.#ending.promise
  }

  assertHeld(): void {
    const lost = this.check()
    if (lost) throw lost
    if (this.#releasing) throw this.#fault('CLOSED', 'was released')
  }

  async extend(ttl: number = this.ttl): Promise<number> {
    await this.#each(lease => lease.extend(ttl))
    this.handle.ttl = ttl
    return this.remaining
  }

  annotate(note: string): Promise<void> {
    return this.#each(lease => lease.annotate(note))
  }

  stopRenewing(): void {
    if (this.check() || this.#releasing) return
    this.#handle.keep()
    for (const lease of this.#leases) lease.stopRenewing()
  }

  /** The heartbeat has renewed it: a program that lost the handle is warned. */
  watchHandle(): void {
    this.#handle.watch()
  }

  release(): Promise<LeaseEnd> {
    const lost = this.check() // first: a listener of the loss may release
    if (this.#releasing) return this.#releasing
    this.#stop()
    this.#releasing = this.#answer(Promise.all(this.#leases.map(lease => lease.release())))
    if (!lost && events.release_began.hasSubscribers) events.release_began.publish({ lease: this.handle })
    return this.#releasing
  }

  async end(): Promise<LeaseError | undefined> {
    return (await this.release()) === 'lost' ? this.error : undefined
  }

  abort(reason: unknown): void {
    this.#abort.abort(reason)
  }

  /** Throws nothing: the error says that it is lost. */
  check(): LeaseError | undefined {
    if (this.error || this.#releasing) return this.error
    // A loss is reported to lose(), but not one from before this permit was made: the process may have been paused.
    for (const lease of this.#leases) if (lease.check()) this.#lose('expired')
    return this.error
  }

  /** A slot was lost. */
  lose(_: LeaseError, reason: LossReason): void {
    this.#lose(reason)
  }

  /** A slot was released, which may be long after the call that releases them. */
  released(): void {
    this.#released += 1
    if (this.#released === this.#leases.length && !this.error && events.lease_released.hasSubscribers)
      events.lease_released.publish({ lease: this.handle })
  }

  #lose(reason: LossReason): void {
    if (this.error) return
    const lost = this.heldSlots.find((_, index) => this.#leases[index]?.isLost)
    const which = this.slots.length > 1 && lost ? ` because its slot ${lost.slot}` : ''
    const what = {
      gone: `is no longer held${which ? `,${which}` : ', because it'} expired at the store or was broken`,
      expired: which ? `is lost,${which} was not renewed in time` : 'was not renewed in time',
      term: 'has no heartbeat, and its term ended',
      max_hold: `was held for ${this.#maxHold} ms, its maxHold`,
    }[reason]
    const error = this.#fault(reason === 'max_hold' ? 'MAX_HOLD' : 'LEASE_LOST', what)
    this.error = error
    this.#stop()
    this.#abort.abort(error)
    if (events.lease_lost.hasSubscribers) events.lease_lost.publish({ lease: this.handle, reason, error })
    this.#ending.settle('lost')
    // After maxHold the work may still run: the slots end by their ttl, or by release(), as one lease does.
    for (const lease of this.#leases) {
      if (reason === 'max_hold') lease.stopRenewing()
      else void lease.release()
    }
  }

  #stop(): void {
    this.#handle.keep()
  }

  async #answer(releases: Promise<readonly LeaseEnd[]>): Promise<LeaseEnd> {
    const ends = await releases
    if (this.error || ends.includes('lost')) return 'lost' // a slot was gone, which has been reported
    return this.#ending.settle(ends.includes('unknown') ? 'unknown' : 'released')
  }

  /** Rejects with the loss of the permit, else with the first error. */
  async #each(action: (lease: HeldLease) => Promise<unknown>): Promise<void> {
    this.assertHeld()
    const results = await Promise.allSettled(this.#leases.map(action))
    this.assertHeld()
    for (const result of results) if (result.status === 'rejected') throw result.reason
  }

  #fault(code: LeaseErrorCode, what: string): LeaseError {
    return new LeaseError(code, `the permit of ${JSON.stringify(this.name)} ${what}`, { lease: this.name })
  }
}

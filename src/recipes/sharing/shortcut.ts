import { LeaseError } from '../../contract/errors.ts'
import { visible } from '../../contract/record.ts'
import type { Cancel } from '../../contract/request.ts'
import { gateName, slotName } from '../../contract/reserved.ts'
import type {
  Busy,
  Claim,
  ClaimKey,
  Grant,
  LeaseRecord,
  NoneGranted,
  Selection,
  SomeGranted,
  Store,
  Wake,
} from '../../contract/store.ts'
import { type Acquired, Acquisition } from '../../core/acquisition.ts'
import type { Core } from '../../core/core.ts'
import { HeldLease } from '../../core/held-lease.ts'
import type { AcquireTerms } from '../../core/options.ts'
import { randomId } from '../../core/random-id.ts'
import type { Renewer } from '../../core/renewer.ts'
import { withdraw } from '../../core/withdraw.ts'
import type { Demand } from './demand.ts'
import { gateTtl, WAITS } from './gate.ts'
import { HeldPermit, type SlotLease } from './held-permit.ts'
import type { SharingHost } from './host.ts'
import { NONE } from './part.ts'
import { PartEvents } from './part-events.ts'

/**
 * An attempt over a store that passes the gate, looks, acquires and leaves in one step (R14). A call for one slot also waits
 * by it: at the gate, then with the gate in the queues of all slots. To the acquisition, all that is one claim.
 */
export class Shortcut implements Pick<Store, 'acquire' | 'release' | 'guarantees'> {
  /** Acquire requests that led to the grant. */
  requests = 1
  /** Was the gate passed? */
  hasEntered = false
  /** Slots that were free when too few were. */
  held = 0
  /** A holder of a slot. */
  holder: LeaseRecord | undefined
  /** Can it wait? */
  readonly waits: boolean
  readonly guarantees: Store['guarantees']
  /** Only if the store has it. */
  readonly watch?: NonNullable<Store['watch']>
  readonly #host: SharingHost
  readonly #core: Core
  readonly #demand: Demand
  readonly #terms: AcquireTerms
  readonly #renewer: Renewer | undefined
  readonly #events: PartEvents
  readonly #slots: readonly number[]
  readonly #selection: Selection
  #answer: SomeGranted | NoneGranted | undefined

  constructor(host: SharingHost, demand: Demand, terms: AcquireTerms, renewer: Renewer | undefined) {
    const { owner, note, ttl, wait } = terms
    const { name, want } = demand
    const { store } = host.core
    const waits = wait > 0 && want === 1
    // The lowest first, but last those that this process holds, or that its other calls ask for at this moment.
    const rank = (slot: number): number =>
      host.heldSlots.has(name, slot) ? 2 : host.askedSlots.has(name, slot) ? 1 : 0
    const slots = demand.slots.toSorted((a, b) => rank(a) - rank(b))
    const free = slots.filter(slot => rank(slot) < 2)
    this.#slots = waits || free.length < want ? slots : free
    const id = randomId()
    const gate = { name: gateName(name), id, owner, ttl: gateTtl(host.core, ttl), note: WAITS, queue: waits }
    const claims = this.#slots.map(slot => ({ name: slotName(name, slot), id, owner, ttl, note, queue: false }))
    this.waits = waits
    this.guarantees = store.guarantees
    if (store.watch) this.watch = (_, wake, signal) => this.#watch(wake, signal)
    this.#host = host
    this.#events = new PartEvents(name)
    this.#core = { ...host.core, events: this.#events.emitters }
    this.#demand = demand
    this.#terms = terms
    this.#renewer = renewer
    this.#selection = { claims, want, gate }
  }

  /** Is it useless to ask again without waiting? */
  get isFull(): boolean {
    // What this process holds may have ended at the store.
    return this.hasEntered && this.#slots.length === this.#demand.slots.length
  }

  /**
   * `undefined`: too few slots are free, or others are at the gate, for as long as it waits; or it cannot wait and the
   * outcome is unknown. Rejects as `Acquisition` otherwise. Whatever may be left behind is withdrawn in the background.
   */
  async run(cancel: Cancel): Promise<HeldPermit | undefined> {
    const { name, want } = this.#demand
    const { owner, ttl, note, wait } = this.#terms
    const { id } = this.#selection.gate
    const asked = this.#host.askedSlots.add(name, this.#slots.slice(0, want))
    const claim: Claim = { name, id, owner, ttl, note, queue: this.waits }
    const core = { ...this.#core, store: this, leases: NONE }
    const acquisition = new Acquisition(core, claim, this.waits ? wait : 0, cancel)
    try {
      const acquired = await acquisition.run()
      this.requests = acquired?.requests ?? 1
      if (!acquired || !this.#answer?.held) return undefined
      if (cancel.cancelled) core.inBackground(withdraw(core, claim, acquired.unsettled))
      cancel.throwIfCancelled() // in this turn
      return this.#accept(this.#answer, acquired)
    } catch (error) {
      if (wait > 0 && !this.waits && !cancel.cancelled && LeaseError.is(error) && error.retryable) return undefined
      throw error
    } finally {
      asked()
    }
  }

  /** Asks for the selection. */
  async acquire(_: Claim, signal: AbortSignal): Promise<Grant | Busy> {
    const answer = await this.#core.store.acquireSome?.(this.#selection, signal)
    if (!answer) throw new LeaseError('STORE_UNAVAILABLE', `the store answered ${String(answer)}`)
    this.#answer = answer
    if (answer.held) return answer.grants.find(grant => grant !== undefined) ?? { held: false, retryAfter: 0 }
    const { isGated, free, holder, wait } = answer
    // Once it has left the queue of the gate, its position there is no longer kept.
    const kept = wait?.kept && isGated && !this.hasEntered
    this.hasEntered ||= !isGated
    this.held = free
    this.holder = holder && visible(holder)
    return { held: false, retryAfter: 0, ...wait, kept, holder }
  }

  /** Withdraws all claims. */
  async release(_: ClaimKey, signal: AbortSignal): Promise<'released' | 'gone'> {
    const { claims, gate } = this.#selection
    const { store } = this.#core
    const answers = await Promise.all([...claims, gate].map(claim => store.release(claim, signal)))
    return answers.includes('released') ? 'released' : 'gone'
  }

  async #watch(wake: Wake, signal: AbortSignal): Promise<void> {
    const { gate } = this.#selection
    await this.#core.store.watch?.(this.hasEntered ? { ...gate, queue: false } : gate, wake, signal)
  }

  #accept({ grants }: SomeGranted, { sent, unsettled, waited, requests }: Acquired): HeldPermit {
    const core = this.#core
    const { heartbeat, background, livenessLimit } = this.#terms
    const options = { heartbeat: heartbeat !== false, background, maxHold: undefined, livenessLimit }
    const held: SlotLease[] = []
    const { claims, gate } = this.#selection
    if (unsettled) core.inBackground(withdraw(core, gate, true)) // a copy may still come to the gate
    for (const [index, claim] of claims.entries()) {
      const grant = grants[index]
      if (!grant && unsettled) core.inBackground(withdraw(core, claim, true))
      if (!grant) continue
      const acquired = { grant, sent, unsettled, waited, requests }
      const lease = this.#renewer?.hold(core, claim, acquired, options) ?? new HeldLease(core, claim, acquired, options)
      void lease.ended // the program has no handle of it that it could lose
      held.push({ slot: this.#slots[index] as number, lease })
    }
    held.sort((a, b) => a.slot - b.slot)
    const permit = new HeldPermit(this.#host, this.#demand.name, held, this.#terms)
    this.#events.permit = permit
    return permit
  }
}

import { LeaseError } from '../../contract/errors.ts'
import { randomId } from '../../contract/random-id.ts'
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
  SomeGranted,
  Store,
} from '../../contract/store.ts'
import { LAST_REQUEST, requestLimit } from '../../contract/time.ts'
import { type Acquired, Acquisition } from '../../core/acquisition.ts'
import type { Core } from '../../core/core.ts'
import type { AcquireTerms } from '../../core/options.ts'
import { holdWith, type Renewer } from '../../core/renewer.ts'
import { withdraw, withdrawIfCancelled } from '../../core/withdraw.ts'
import type { Demand } from './demand.ts'
import { gateTtl, WAITS } from './gate.ts'
import { HeldPermit, type SlotLease } from './held-permit.ts'
import type { SharingHost } from './host.ts'
import { NONE } from './part.ts'
import { PartEvents } from './part-events.ts'

/** When there are more crowded names, all are forgotten. That costs one request for each. */
const MOST_CROWDED = 1_000

/**
 * An attempt over a store that acquires the gate, looks, acquires slots and releases the gate in one step (R14). A call for
 * one slot also waits by it: for the gate, and then with the gate for every slot. To the acquisition, all that is one claim.
 */
export class Shortcut implements Pick<Store, 'acquire' | 'release'> {
  /** Acquire requests so far. */
  requests = 0
  /** Was the gate passed? */
  hasEntered = false
  /** Free slots, by the last answer that granted nothing. */
  held = 0
  /** A holder of a slot. */
  holder: LeaseRecord | undefined
  /** Does it wait by the same request? If not, the call goes on through the gate. */
  readonly waits: boolean
  readonly guarantees: { readonly acquireShare: number }
  /** Only if the store has it. */
  readonly watch?: NonNullable<Store['watch']>
  readonly #host: SharingHost
  readonly #core: Core
  readonly #demand: Demand
  readonly #terms: AcquireTerms
  readonly #renewer: Renewer | undefined
  readonly #events: PartEvents
  /** Those that are asked for, in the order of preference. */
  #slots: readonly number[] = []
  #claims: readonly Claim[] = []
  readonly #gate: Claim
  #answer: SomeGranted | NoneGranted | undefined
  /** May the store know claims to slots? */
  #isKnown = false

  constructor(host: SharingHost, demand: Demand, terms: AcquireTerms, renewer: Renewer | undefined) {
    const { owner, ttl, wait } = terms
    const { name, want } = demand
    const { store } = host.core
    const id = randomId()
    this.waits = wait > 0 && want === 1
    const gate = gateTtl(host.core, ttl)
    const last = wait > 0 && !this.waits ? Math.max(wait, LAST_REQUEST) : Number.POSITIVE_INFINITY
    // The next request must come before the gate ends, and a call for several slots must end in time.
    this.guarantees = { acquireShare: Math.min(requestLimit(gate, store.guarantees?.acquireShare), last) / ttl }
    if (store.watch)
      this.watch = async (_, wake, signal) =>
        store.watch?.(this.hasEntered ? { ...this.#gate, queue: false } : this.#gate, wake, signal)
    this.#host = host
    this.#events = new PartEvents(name)
    this.#core = { ...host.core, events: this.#events.emitters }
    this.#demand = demand
    this.#terms = terms
    this.#renewer = renewer
    this.#gate = { name: gateName(name), id, owner, ttl: gate, note: WAITS, queue: this.waits }
    // The first request of a call that may wait is for one slot alone, unless an earlier call found its slot taken.
    this.#choose(this.waits && !host.crowded.has(name))
  }

  /** Is it useless to ask again without waiting? */
  get isFull(): boolean {
    // What this process holds may have ended at the store.
    return this.hasEntered && this.#slots.length === this.#demand.slots.length
  }

  /**
   * `undefined`: too few slots are free, or others are at the gate, for as long as it waits; or a request failed that the
   * call repeats through the gate. Rejects as `Acquisition` otherwise. What may be left behind is withdrawn in the
   * background.
   */
  async run(cancel: Cancel): Promise<HeldPermit | undefined> {
    const { name, want } = this.#demand
    const { owner, ttl, note, wait } = this.#terms
    const asked = this.#host.askedSlots.add(name, this.#slots.slice(0, want))
    const claim: Claim = { name, id: this.#gate.id, owner, ttl, note, queue: this.waits }
    const core = { ...this.#core, store: this, leases: NONE }
    try {
      const acquired = await new Acquisition(core, claim, this.waits ? wait : 0, cancel).run()
      if (!acquired || !this.#answer?.held) return undefined
      withdrawIfCancelled(core, claim, acquired.unsettled, cancel)
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
    const { name, slots } = this.#demand
    const { crowded } = this.#host
    const isFirst = !this.requests
    const isAlone = this.waits && this.#slots.length < slots.length
    let answer = isAlone && isFirst ? await this.#ask({ ...this.#gate, queue: false }, signal) : undefined
    if (isAlone && !answer?.held) {
      if (crowded.size > MOST_CROWDED) crowded.clear()
      crowded.add(name)
      this.#choose()
    }
    if (!answer?.held) {
      answer = await this.#ask(this.#gate, signal)
      if (isFirst && !isAlone && answer.held && answer.grants[0]) crowded.delete(name)
    }
    this.#answer = answer
    if (answer.held) return answer.grants.find(grant => grant) ?? { held: false, retryAfter: 0 }
    const { isGated, holder, wait } = answer
    this.hasEntered ||= !isGated
    this.held = answer.free
    this.holder = holder && visible(holder)
    // Once it has left the queue of the gate, its position there is no longer kept.
    return { held: false, retryAfter: 0, ...wait, kept: wait?.kept && !this.hasEntered, holder }
  }

  /** Withdraws all claims that the store may know. */
  async release(_: ClaimKey, signal: AbortSignal): Promise<'released' | 'gone'> {
    const { store } = this.#core
    const claims = [...(this.#isKnown ? this.#claims : []), this.#gate]
    const answers = await Promise.all(claims.map(claim => store.release(claim, signal)))
    return answers.includes('released') ? 'released' : 'gone'
  }

  async #ask(gate: Claim, signal: AbortSignal): Promise<SomeGranted | NoneGranted> {
    this.requests += 1
    const selection = { claims: this.#claims, want: this.#demand.want, gate }
    const wasKnown = this.#isKnown
    this.#isKnown = true
    // A store that answers nothing fails as in any other request.
    const answer = (await this.#core.store.acquireSome?.(selection, signal)) as SomeGranted | NoneGranted
    signal.throwIfAborted() // too late: the next request may be on its way, for slots in another order
    // It waits for no slot if it does not queue, or is still at the gate.
    if (!answer.held && (answer.isGated || !gate.queue)) this.#isKnown = wasKnown
    return answer
  }

  /**
   * Chooses the slots to ask for. The lowest come first, then those that other calls of this process ask for, then those that
   * it holds. `isAlone`: it asks for the first only, but not for one of its own, which would be useless. A call that does not
   * wait leaves out what is held here, if there are enough others.
   */
  #choose(isAlone = false): void {
    const { name, slots, want } = this.#demand
    const { owner, ttl, note } = this.#terms
    const { id } = this.#gate
    const held = this.#host.heldSlots.of(name)
    const asked = this.#host.askedSlots.of(name)
    const rank = (slot: number): number => 2 * ((held >> slot) & 1) + ((asked >> slot) & 1)
    const first = slots.reduce((a, b) => (rank(b) < rank(a) ? b : a))
    if (isAlone && rank(first) < 2) this.#slots = [first]
    else {
      const all = slots.toSorted((a, b) => rank(a) - rank(b))
      const others = all.filter(slot => rank(slot) < 2)
      this.#slots = !this.waits && others.length >= want ? others : all
    }
    this.#claims = this.#slots.map(slot => ({ name: slotName(name, slot), id, owner, ttl, note, queue: false }))
  }

  #accept({ grants }: SomeGranted, { sent, unsettled, waited, requests }: Acquired): HeldPermit {
    const core = this.#core
    const { heartbeat, background, livenessLimit } = this.#terms
    const options = { heartbeat: heartbeat !== false, background, livenessLimit }
    const held: SlotLease[] = []
    if (unsettled) core.inBackground(withdraw(core, this.#gate, true)) // a copy may still come to the gate
    for (const [index, claim] of this.#claims.entries()) {
      const grant = grants[index]
      if (!grant) {
        if (unsettled) core.inBackground(withdraw(core, claim, true))
        continue
      }
      const acquired = { grant, sent, unsettled, waited, requests }
      const lease = holdWith(this.#renewer, core, claim, acquired, options)
      void lease.ended // the program has no handle of it that it could lose
      held.push({ slot: this.#slots[index] as number, lease })
    }
    held.sort((a, b) => a.slot - b.slot)
    const permit = new HeldPermit(this.#host, this.#demand, held, this.#terms)
    this.#events.permit = permit
    return permit
  }
}

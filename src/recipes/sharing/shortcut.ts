import { LeaseError } from '../../contract/errors.ts'
import { visible } from '../../contract/record.ts'
import { type Cancel, request, storeError } from '../../contract/request.ts'
import { gateName, slotName } from '../../contract/reserved.ts'
import type { Claim, LeaseRecord, NoneGranted, SomeGranted, Store } from '../../contract/store.ts'
import { LAST_REQUEST, LONGEST_TRY, requestLimit } from '../../contract/time.ts'
import { checkTerm, unanswered } from '../../core/acquisition.ts'
import type { Core } from '../../core/core.ts'
import { HeldLease } from '../../core/held-lease.ts'
import type { AcquireTerms } from '../../core/options.ts'
import { randomId } from '../../core/random-id.ts'
import type { Renewer } from '../../core/renewer.ts'
import { withdraw } from '../../core/withdraw.ts'
import type { Demand } from './demand.ts'
import { HeldPermit, type SlotLease } from './held-permit.ts'
import type { SharingHost } from './host.ts'
import { PartEvents } from './part-events.ts'

/**
 * One request for free slots, of a store that passes the gate, looks, acquires and leaves in one step (R14). Its result is
 * that of an `Attempt` that need not wait.
 */
export class Shortcut {
  /** Acquire requests that led to the grant. */
  readonly requests = 1
  /** Are too few slots free, so that asking again is useless without waiting? */
  isFull = false
  /** Slots that were free when too few were. */
  held = 0
  /** A holder of a slot. */
  holder: LeaseRecord | undefined
  readonly #host: SharingHost
  readonly #core: Core
  readonly #demand: Demand
  readonly #terms: AcquireTerms
  readonly #renewer: Renewer | undefined
  readonly #events: PartEvents
  /** Those that this process may acquire. */
  readonly #slots: readonly number[]
  readonly #claims: readonly Claim[]

  constructor(host: SharingHost, demand: Demand, terms: AcquireTerms, renewer: Renewer | undefined) {
    const { owner, note, ttl } = terms
    const { name } = demand
    const others = demand.slots.filter(slot => !host.heldSlots.has(name, slot))
    const known = others.length < demand.want ? demand.slots : others
    // The lowest first, but those last that other calls of this process ask for at this moment.
    const isAsked = (slot: number): boolean => host.askedSlots.has(name, slot)
    const slots = [...known.filter(slot => !isAsked(slot)), ...known.filter(isAsked)]
    this.#host = host
    this.#slots = slots
    this.#events = new PartEvents(name)
    this.#core = { ...host.core, events: this.#events.emitters }
    this.#demand = demand
    this.#terms = terms
    this.#renewer = renewer
    this.#claims = slots.map(slot => ({ name: slotName(name, slot), id: randomId(), owner, ttl, note, queue: false }))
  }

  /** Was the gate passed? */
  get hasEntered(): boolean {
    return this.isFull
  }

  /**
   * Asks once. `undefined`: too few slots are free, or others are at the gate, or the outcome is unknown and `limit` is
   * more than 0. Rejects as a try otherwise. Whatever may be left behind is withdrawn in the background.
   */
  async run(limit: number, cancel: Cancel): Promise<HeldPermit | undefined> {
    const { clock, store } = this.#core
    const { name } = this.#demand
    const { owner, ttl } = this.#terms
    const sent = clock.now()
    const asked = this.#host.askedSlots.add(name, this.#slots.slice(0, this.#demand.want))
    try {
      const answer = await this.#ask(store, limit, cancel)
      if (!answer.held) return this.#refused(answer)
      const elapsed = clock.now() - sent
      for (const grant of answer.grants) if (grant) checkTerm(grant, elapsed)
      cancel.throwIfCancelled() // in this turn
      return this.#accept(answer, sent)
    } catch (reason) {
      for (const claim of this.#claims) this.#core.inBackground(withdraw(this.#core, claim, true))
      cancel.throwIfCancelled()
      const error = storeError(reason)
      this.#core.events.request_failed.publish({ request: 'acquire', name, owner, error })
      if (limit > 0 && error.retryable) return undefined
      throw unanswered(error, name, ttl)
    } finally {
      asked()
    }
  }

  #ask(store: Store, limit: number, cancel: Cancel): Promise<SomeGranted | NoneGranted> {
    const { want, name } = this.#demand
    const left = limit > 0 ? Math.max(limit, LAST_REQUEST) : LONGEST_TRY
    const longest = Math.min(requestLimit(this.#terms.ttl, store.guarantees?.acquireShare), left)
    const selection = { claims: this.#claims, want, gate: gateName(name) }
    const send = async (signal: AbortSignal): Promise<SomeGranted | NoneGranted> => {
      const answer = await store.acquireSome?.(selection, signal)
      if (answer) return answer
      throw new LeaseError('STORE_UNAVAILABLE', `the store answered ${String(answer)}`)
    }
    return request(this.#core.clock, longest, send, { cancel })
  }

  #refused({ isGated, free, holder }: NoneGranted): undefined {
    const { name } = this.#demand
    const { owner } = this.#terms
    // What this process holds may have ended at the store.
    this.isFull = !isGated && this.#slots.length === this.#demand.slots.length
    this.held = free
    this.holder = holder && visible(holder)
    if (this.#core.events.lease_busy.hasSubscribers)
      this.#core.events.lease_busy.publish({ name, owner, holder: this.holder, ahead: undefined })
  }

  #accept({ grants }: SomeGranted, sent: number): HeldPermit {
    const core = this.#core
    const { heartbeat, background, livenessLimit } = this.#terms
    const options = { heartbeat: heartbeat !== false, background, maxHold: undefined, livenessLimit }
    const waited = core.clock.now() - sent
    const held: SlotLease[] = []
    for (const [index, claim] of this.#claims.entries()) {
      const grant = grants[index]
      if (!grant) continue
      const acquired = { grant, sent, unsettled: false, waited, requests: 1 }
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

import { request } from '../../contract/request.ts'
import type { LeaseRecord } from '../../contract/store.ts'
import { LAST_REQUEST, LAST_WITHDRAWAL } from '../../contract/time.ts'
import type { AcquireTerms } from '../../core/options.ts'
import type { Renewer } from '../../core/renewer.ts'
import type { Demand } from './demand.ts'
import { Gate } from './gate.ts'
import { HeldPermit } from './held-permit.ts'
import type { SharingHost } from './host.ts'
import { PartEvents } from './part-events.ts'
import { Slots } from './slots.ts'

/** Why the parts of an attempt end. */
const OVER = 'the attempt is over'
const GATE_LOST = 'the gate was lost'

/**
 * One pass through the gate: enter it, look for free slots, wait for them, leave. If the gate is lost, everything that
 * was not handed out is withdrawn before the gate is asked for again. Otherwise two calls that each hold some slots could
 * wait for each other.
 */
export class Attempt {
  isGateLost = false
  hasEntered = false
  /** Slots that it held when it gave up. */
  held = 0
  /** A holder of a slot. */
  holder: LeaseRecord | undefined
  readonly #host: SharingHost
  readonly #terms: AcquireTerms
  readonly #gate: Gate
  readonly #slots: Slots<HeldPermit>
  readonly #events: PartEvents

  constructor(host: SharingHost, demand: Demand, terms: AcquireTerms, renewer: Renewer | undefined) {
    const { core } = host
    const { owner, note, ttl } = terms
    const { name } = demand
    this.#host = host
    this.#terms = terms
    this.#events = new PartEvents(name)
    const of = { core, events: this.#events.emitters, renewer, owner, note, patience: ttl }
    this.#gate = new Gate({ ...of, events: new PartEvents(name).emitters }, name, ttl)
    this.#slots = new Slots(of, demand, terms, held => {
      const permit = new HeldPermit(demand, held, terms)
      this.#events.permit = permit
      return permit
    })
  }

  /** Acquire requests that led to the grant. */
  get requests(): number {
    return this.#gate.requests + this.#slots.requests
  }

  cancel(reason: unknown): void {
    this.#gate.cancel(reason)
    this.#slots.cancel(reason)
  }

  /** `undefined`: the slots were not free until `giveUpAt`, or now without it; or the gate was lost. */
  async run(giveUpAt: number | undefined): Promise<HeldPermit | undefined> {
    const { core } = this.#host
    let permit: HeldPermit | undefined
    let hasFailed = true
    try {
      permit = await this.#acquire(giveUpAt)
      hasFailed = false
      return permit
    } catch (error) {
      if (!this.isGateLost || error !== GATE_LOST) throw error
      hasFailed = false
      return undefined
    } finally {
      const left = this.#leave()
      core.inBackground(left)
      // The caller's next call should not find what this one leaves behind. After a failure the store may not answer.
      const within = (limit: number): Promise<unknown> => request(core.clock, limit, () => left).catch(() => {})
      const isNeeded = this.isGateLost || (!hasFailed && (permit !== undefined || giveUpAt === undefined))
      if (this.isGateLost && giveUpAt === Number.POSITIVE_INFINITY) await left
      else if (this.isGateLost && giveUpAt !== undefined)
        await within(Math.max(giveUpAt - core.clock.now(), LAST_REQUEST)) // if that is too short, it is over anyway
      else if (isNeeded) await within(LAST_WITHDRAWAL)
    }
  }

  async #acquire(giveUpAt: number | undefined): Promise<HeldPermit | undefined> {
    const { clock } = this.#host.core
    const slots = this.#slots
    const left = (): number => (giveUpAt === undefined ? 0 : giveUpAt - clock.now())
    if (!(await this.#gate.enter(giveUpAt === undefined ? 0 : Math.max(left(), 1)))) return undefined
    this.hasEntered = true
    this.#gate.onLost(() => {
      this.isGateLost = true
      slots.cancel(GATE_LOST)
    })
    let permit = await slots.look(giveUpAt)
    if (!permit && left() > 0) {
      this.#gate.announceWait()
      permit = await slots.wait(left())
    }
    this.held = slots.count
    this.holder = slots.busy?.holder
    if (!permit || this.#terms.heartbeat || permit.slots.length === 1) return permit
    permit.stopRenewing() // its fixed term begins now: until all slots were held, they were renewed
    await permit.extend().catch(error => {
      void permit.release()
      throw error
    })
    return permit
  }

  /** Never rejects. The gate comes last: until then nobody meets the claims of this attempt. */
  async #leave(): Promise<void> {
    await this.#slots.withdraw(OVER)
    await this.#gate.leave(OVER)
  }
}

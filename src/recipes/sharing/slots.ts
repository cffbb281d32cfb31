import { LeaseError } from '../../contract/errors.ts'
import { Cancel } from '../../contract/request.ts'
import { slotName } from '../../contract/reserved.ts'
import { LAST_REQUEST } from '../../contract/time.ts'
import type { AcquireTerms } from '../../core/options.ts'
import type { RenewerOptions } from '../../core/renewer.ts'
import { whenAborted } from '../../core/signals.ts'
import type { Demand } from './demand.ts'
import type { SlotLease } from './held-permit.ts'
import { Part, type PartsOf } from './part.ts'

/** The slots that a call acquires while it holds the gate. */
export class Slots<Whole> {
  /** Acquire requests that led to the grants. */
  requests = 0
  readonly #of: PartsOf
  readonly #demand: Demand
  readonly #ttl: number
  readonly #hold: RenewerOptions
  readonly #handOut: (slots: readonly SlotLease[]) => Whole
  /** All parts that are neither handed out nor withdrawn. */
  readonly #parts = new Set<Part>()
  readonly #held = new Map<number, Part>()
  #askAgain: ((slot: number) => void) | undefined
  readonly #cancel = new Cancel()

  /**
   * `handOut` makes a whole of the slots that the call wants, in the turn in which all are held: it notices what is lost
   * later.
   */
  constructor(of: PartsOf, demand: Demand, terms: AcquireTerms, handOut: (slots: readonly SlotLease[]) => Whole) {
    const { ttl, background, heartbeat, livenessLimit } = terms
    this.#of = of
    this.#demand = demand
    this.#ttl = ttl
    this.#handOut = handOut
    // A slot that waits for others must not end. The permit has its own maxHold, which begins later.
    this.#hold = { heartbeat: heartbeat !== false || demand.want > 1, background, livenessLimit }
  }

  get count(): number {
    return this.#held.size
  }

  /** Are as many held as are wanted? One may be lost in the next turn. */
  get isEnough(): boolean {
    return this.count >= this.#demand.want
  }

  /** The last busy answer about a slot. */
  get busy(): Part['busy'] {
    return [...this.#parts].map(({ busy }) => busy).findLast(busy => busy?.holder)
  }

  /**
   * Asks for each slot once, the lowest first, until enough are held. Resolves to what `handOut` makes of them. With
   * `giveUpAt` the call goes on to wait until then, so a failure that a retry may fix counts as busy.
   */
  async look(giveUpAt?: number): Promise<Whole | undefined> {
    const { slots, want } = this.#demand
    const { clock } = this.#of.core
    const isOver = (): boolean => giveUpAt !== undefined && clock.now() >= giveUpAt
    const ask = async (slot: number): Promise<void> => {
      const part = this.#part(slot)
      try {
        if (await part.ask(0, giveUpAt && Math.max(giveUpAt - clock.now(), LAST_REQUEST))) this.#keep(slot, part)
      } catch (error) {
        const isLast = giveUpAt === undefined || (isOver() && !this.busy)
        if (isLast || this.#cancel.cancelled || !LeaseError.is(error) || !error.retryable) throw error
      }
    }
    // Each round of further slots asks for twice as many. So few are granted in vain, and a full name takes few rounds.
    for (let from = 0, size = want; from < slots.length && !this.isEnough; from += size, size *= from > want ? 2 : 1) {
      if (from > 0 && isOver()) return undefined
      await Promise.all(slots.slice(from, from + size).map(ask))
    }
    return this.#whole()
  }

  /** As `look`, but waits in the queue of every slot that is not held, for up to `limit` ms. */
  async wait(limit: number): Promise<Whole | undefined> {
    const { clock } = this.#of.core
    const giveUpAt = clock.now() + limit
    let end: (() => undefined) | undefined
    let wake = (): void => {}
    const ask = async (slot: number): Promise<void> => {
      try {
        const part = this.#part(slot)
        if (await part.ask(Math.max(giveUpAt - clock.now(), 1))) this.#keep(slot, part)
        else end ??= () => undefined
      } catch (error) {
        end ??= () => {
          throw error
        }
      }
      wake()
    }
    this.#askAgain = slot => void ask(slot)
    for (const slot of this.#demand.slots) if (!this.#held.has(slot)) void ask(slot)
    try {
      while (!this.isEnough) {
        if (end) return end()
        await new Promise<void>(resolve => {
          wake = resolve
        })
      }
      return this.#whole()
    } finally {
      this.#askAgain = undefined
    }
  }

  cancel(reason: unknown): void {
    this.#cancel.cancel(reason)
    for (const part of this.#parts) part.cancel(reason)
  }

  /** Withdraws everything that was not handed out. Resolves after at most 5 s, never rejects. */
  async withdraw(reason: unknown): Promise<void> {
    this.#held.clear()
    await Promise.all([...this.#parts].map(part => part.withdraw(reason)))
  }

  /** What is handed out of the slots, in ascending order. They are no longer withdrawn. */
  #whole(): Whole | undefined {
    if (!this.isEnough) return undefined
    const taken: SlotLease[] = []
    for (const [slot, part] of [...this.#held].slice(0, this.#demand.want)) {
      this.#held.delete(slot)
      this.#parts.delete(part)
      if (part.lease) taken.push({ slot, lease: part.lease })
    }
    return this.#handOut(taken.sort((a, b) => a.slot - b.slot))
  }

  /** Throws if the call was cancelled, which may happen between two steps. */
  #part(slot: number): Part {
    this.#cancel.throwIfCancelled()
    const part = new Part(this.#of, slotName(this.#demand.name, slot), this.#ttl, this.#hold)
    this.#parts.add(part)
    return part
  }

  #keep(slot: number, part: Part): void {
    this.requests += part.requests
    this.#held.set(slot, part)
    const lose = (): void => {
      if (this.#held.get(slot) === part && this.#held.delete(slot)) this.#askAgain?.(slot)
    }
    if (part.lease) whenAborted(part.lease.signal, lose)
  }
}

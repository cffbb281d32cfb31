import { LeaseError } from '../../contract/errors.ts'
import { slotName } from '../../contract/reserved.ts'
import type { AcquireTerms } from '../../core/options.ts'
import type { RenewerOptions } from '../../core/renewer.ts'
import type { Demand } from './demand.ts'
import type { SlotLease } from './held-permit.ts'
import { Part, type PartsOf } from './part.ts'

/** The slots that a call acquires while it holds the gate. */
export class Slots {
  readonly #of: PartsOf
  readonly #demand: Demand
  readonly #ttl: number
  readonly #hold: RenewerOptions
  /** All parts that are neither handed out nor withdrawn. */
  readonly #parts = new Set<Part>()
  readonly #held = new Map<number, Part>()
  #askAgain: ((slot: number) => void) | undefined
  #requests = 0
  #isCancelled = false

  constructor(of: PartsOf, demand: Demand, terms: AcquireTerms) {
    const { ttl, background, heartbeat, livenessLimit } = terms
    this.#of = of
    this.#demand = demand
    this.#ttl = ttl
    // A slot that waits for others must not end. The permit has its own maxHold, which begins later.
    this.#hold = { heartbeat: heartbeat !== false || demand.want > 1, background, maxHold: undefined, livenessLimit }
  }

  get requests(): number {
    return this.#requests
  }

  get count(): number {
    return this.#held.size
  }

  /** The last busy answer about a slot. */
  get busy(): Part['busy'] {
    return [...this.#parts].map(({ busy }) => busy).findLast(busy => busy?.holder)
  }

  /**
   * Asks for each slot once, the lowest first, until enough are held. True if they are. `waits`: the call goes on to
   * wait, so a failure that a retry may fix counts as busy.
   */
  async look(waits: boolean): Promise<boolean> {
    const { slots, want } = this.#demand
    const ask = async (slot: number): Promise<void> => {
      const part = this.#part(slot)
      try {
        if (await part.ask(0)) this.#keep(slot, part)
      } catch (error) {
        if (!waits || this.#isCancelled || !LeaseError.is(error) || !error.retryable) throw error
      }
    }
    // Each round asks for twice as many. So few are granted that are not needed, and a full name takes few rounds.
    for (let from = 0, size = want; from < slots.length && this.count < want; from += size, size *= from > want ? 2 : 1)
      await Promise.all(slots.slice(from, from + size).map(ask))
    return this.count >= want
  }

  /** Waits in the queue of every slot that is not held. False if `limit` ms are over first. */
  async wait(limit: number): Promise<boolean> {
    const { slots, want } = this.#demand
    const { clock } = this.#of.core
    const giveUpAt = clock.now() + limit
    const { promise, resolve, reject } = Promise.withResolvers<boolean>()
    const ask = async (slot: number): Promise<void> => {
      const part = this.#part(slot)
      try {
        if (await part.ask(Math.max(giveUpAt - clock.now(), 1))) this.#keep(slot, part)
        else resolve(false)
        if (this.count >= want) resolve(true)
      } catch (error) {
        reject(error)
      }
    }
    this.#askAgain = slot => void ask(slot)
    for (const slot of slots) if (!this.#held.has(slot)) void ask(slot)
    try {
      return await promise
    } finally {
      this.#askAgain = undefined
    }
  }

  /** Hands out as many slots as are wanted, in ascending order. They are no longer withdrawn. */
  take(): SlotLease[] {
    const taken: SlotLease[] = []
    for (const [slot, part] of [...this.#held].slice(0, this.#demand.want)) {
      this.#held.delete(slot)
      this.#parts.delete(part)
      if (part.lease) taken.push({ slot, lease: part.lease })
    }
    return taken.sort((a, b) => a.slot - b.slot)
  }

  cancel(reason: unknown): void {
    this.#isCancelled = true
    for (const part of this.#parts) part.cancel(reason)
  }

  /** Withdraws everything that was not handed out. Resolves after at most 5 s, never rejects. */
  async withdraw(reason: unknown): Promise<void> {
    this.#held.clear()
    await Promise.all([...this.#parts].map(part => part.withdraw(reason)))
  }

  #part(slot: number): Part {
    const part = new Part(this.#of, slotName(this.#demand.name, slot), this.#ttl, this.#hold)
    this.#parts.add(part)
    return part
  }

  #keep(slot: number, part: Part): void {
    this.#requests += part.requests
    this.#held.set(slot, part)
    const signal = part.lease?.signal
    signal?.addEventListener('abort', () => {
      if (this.#held.get(slot) !== part) return
      this.#held.delete(slot)
      this.#askAgain?.(slot)
    })
  }
}

import { backoff, Cancel, pause } from '../../contract/request.ts'
import { gateName } from '../../contract/reserved.ts'
import type { Busy } from '../../contract/store.ts'
import type { Core } from '../../core/core.ts'
import { whenAborted } from '../../core/signals.ts'
import { Part, type PartsOf } from './part.ts'

/** The longest ttl of a gate in milliseconds: a holder that died blocks the name for as long. */
const LONGEST_TTL = 5_000

/** The note of a gate whose holder waits for slots. A try need not ask for it again. */
const WAITS = 'waits for a slot'

/** Milliseconds for which a try asks again while the holder of the gate only passes. */
const PATIENCE = 500

/** Milliseconds between its requests: the first pause, and the longest. */
const PAUSES = [5, 50] as const

/**
 * The gate of a shared name: one call at a time looks for free slots and joins their queues. Its queue is the order of
 * the calls, and the reason why two calls never wait for each other's slots.
 */
export class Gate {
  readonly #of: PartsOf
  readonly #name: string
  readonly #ttl: number
  readonly #cancel = new Cancel()
  #part: Part | undefined

  /** `ttl`: of the slots. */
  constructor(of: PartsOf, name: string, ttl: number) {
    this.#of = { ...of, renewer: undefined, note: '' }
    this.#name = gateName(name)
    this.#ttl = gateTtl(of.core, ttl)
  }

  get requests(): number {
    return this.#part?.requests ?? 0
  }

  /**
   * True once this call holds the gate. `limit`: milliseconds to wait in its queue. 0 does not queue, and asks again only
   * for as long as the holder passes.
   */
  async enter(limit: number): Promise<boolean> {
    const { clock, random } = this.#of.core
    const began = clock.now()
    for (let failures = 1; ; failures += 1) {
      this.#cancel.throwIfCancelled()
      const part = new Part(this.#of, this.#name, this.#ttl, { heartbeat: true, background: true })
      this.#part = part
      if (await part.ask(limit)) return true
      if (limit > 0 || isTaken(part.busy) || clock.now() >= began + PATIENCE) return false
      await pause(clock, backoff(failures, random, PAUSES), { cancel: this.#cancel })
    }
  }

  /** Calls `action` if the gate is lost from now on. */
  onLost(action: () => void): void {
    if (this.#part?.lease) whenAborted(this.#part.lease.signal, action)
  }

  /** Lets tries know that they need not ask again. */
  announceWait(): void {
    this.#part?.lease?.annotate(WAITS).catch(() => {}) // a try then takes longer to answer
  }

  cancel(reason: unknown): void {
    this.#cancel.cancel(reason)
    this.#part?.cancel(reason)
  }

  /** Never rejects. */
  async leave(reason: unknown): Promise<void> {
    await this.#part?.withdraw(reason)
  }
}

/** The ttl of a gate, for slots of this ttl. */
function gateTtl({ store }: Core, ttl: number): number {
  return Math.max(Math.min(ttl, LONGEST_TTL), store.guarantees?.shortestTtl ?? 0)
}

/** Will the gate certainly not become free soon? */
function isTaken(busy: Busy | undefined): boolean {
  return (busy?.ahead ?? 0) > 0 || busy?.holder?.note === WAITS
}

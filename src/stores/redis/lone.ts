import { GONE, type Program, programIn } from './script.ts'

/** Acquires a free name for a claim of one unit. If it cannot decide, it answers nothing and has written nothing. */
export const acquireAlone: Program = programIn('redis/lua/lone/acquire')

/** Releases a lease that its claim holds alone and that has no waiters. If it cannot decide, it answers nothing. */
export const releaseAlone: Program = programIn('redis/lua/lone/release')

/** Milliseconds for which a name that was busy still counts as busy. */
const LATELY = 10_000

/** The largest number of names that are remembered as busy. */
const MOST = 256

/** Milliseconds. If the round trip is longer, asking twice costs more than the small program saves. */
const LONGEST_TRIP = 2

/** The part of a `Request` that the programs need. */
interface LoneRequest {
  readonly verb: string
  readonly key: string
  readonly id: string
  readonly parameters: string
}

/** A call of a program. */
export interface Call {
  readonly program: Program
  readonly keys: readonly string[]
  readonly args: readonly string[]
}

/**
 * Requests that are alone in their round trip. A small program serves them with only the keys that they need. What it
 * cannot decide is sent to the script of the store, with the same deadline. Requests for a name that was recently busy go
 * to the script at once. That is only a hint: both make the same decisions.
 */
export class LoneRequests {
  readonly #counter: string
  /** The times when names were busy, by key. */
  readonly #busy = new Map<string, number>()

  /** `counter`: the key of the highest token. */
  constructor(counter: string) {
    this.#counter = counter
  }

  /** The call for a request. `undefined`: use the script. */
  callOf(
    { verb, key, id, parameters }: LoneRequest,
    deadline: number,
    sent: number,
    roundTrip: number,
  ): Call | undefined {
    if (roundTrip > LONGEST_TRIP) return undefined
    const busy = this.#busy.get(key)
    if (busy !== undefined && sent < busy + LATELY) return undefined
    if (verb === 'release') return { program: releaseAlone, keys: [key, this.#counter], args: [id] }
    if (verb !== 'acquire') return undefined
    return { program: acquireAlone, keys: [key, key + GONE + id, this.#counter], args: [`${deadline}`, parameters, id] }
  }

  /**
   * Learns from an answer of the script. The program could not have decided it if the name is held (`-…`) or was released
   * with waiters (`1`).
   */
  learn(key: string, answer: unknown, sent: number): void {
    if (!/^[-1]/.test(String(answer))) return
    if (this.#busy.size >= MOST) this.#busy.clear()
    this.#busy.set(key, sent)
  }
}

/** What renewals have shown in addition to their latencies. Milliseconds. */
export interface Disruptions {
  /** Requests that failed or timed out. */
  readonly failed: number
  readonly unresponsiveness: number
  readonly loopDelay: number
}

const NONE: Disruptions = { failed: 0, unresponsiveness: 0, loopDelay: 0 }

/** Combines the disruptions of two threads. */
export function merge(a: Disruptions, b: Disruptions): Disruptions {
  return {
    failed: a.failed + b.failed,
    unresponsiveness: Math.max(a.unresponsiveness, b.unresponsiveness),
    loopDelay: Math.max(a.loopDelay, b.loopDelay),
  }
}

/** Disruptions that one thread writes and another reads at any time, without a lock or a message. */
export class SharedDisruptions {
  readonly memory: SharedArrayBuffer
  /** A count, then microseconds. Integers, because a reader never sees half of one. */
  readonly #words: BigInt64Array
  #last: Disruptions = NONE

  /** `memory`: that of another thread. */
  constructor(memory: SharedArrayBuffer = new SharedArrayBuffer(24)) {
    this.memory = memory
    this.#words = new BigInt64Array(memory)
  }

  read(): Disruptions {
    const [failed, unresponsiveness, loopDelay] = [0, 1, 2].map(word =>
      Number(Atomics.load(this.#words, word)),
    ) as Numbers
    return { failed, unresponsiveness: unresponsiveness / 1_000, loopDelay: loopDelay / 1_000 }
  }

  /** Cheap if nothing changed, as after most renewals. */
  write(next: Disruptions): void {
    const { failed, unresponsiveness, loopDelay } = next
    const last = this.#last
    if (failed === last.failed && unresponsiveness === last.unresponsiveness && loopDelay === last.loopDelay) return
    this.#last = next
    for (const [word, value] of [failed, unresponsiveness * 1_000, loopDelay * 1_000].entries())
      Atomics.store(this.#words, word, BigInt(Math.round(value)))
  }
}

type Numbers = [number, number, number]

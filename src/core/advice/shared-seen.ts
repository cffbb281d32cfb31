/** What renewals have shown beside their latencies. Milliseconds. */
export interface Seen {
  /** Requests that failed or were not answered. */
  readonly failed: number
  readonly silence: number
  readonly loopDelay: number
}

const NOTHING: Seen = { failed: 0, silence: 0, loopDelay: 0 }

/** What two have seen, or one after the other. */
export function joined(a: Seen, b: Seen): Seen {
  return {
    failed: a.failed + b.failed,
    silence: Math.max(a.silence, b.silence),
    loopDelay: Math.max(a.loopDelay, b.loopDelay),
  }
}

/** The same, told by one thread and read by another at any time, without a lock or a message. */
export class SharedSeen {
  readonly memory: SharedArrayBuffer
  /** A count, then microseconds: of the integers a half that is written is never read. */
  readonly #words: BigInt64Array
  #last: Seen = NOTHING

  /** In `memory` if it is given, of another thread's. */
  constructor(memory: SharedArrayBuffer = new SharedArrayBuffer(24)) {
    this.memory = memory
    this.#words = new BigInt64Array(memory)
  }

  read(): Seen {
    const [failed, silence, loopDelay] = [0, 1, 2].map(word => Number(Atomics.load(this.#words, word))) as Numbers
    return { failed, silence: silence / 1_000, loopDelay: loopDelay / 1_000 }
  }

  /** Cheap when it is what was written before, as after most renewals. */
  write(seen: Seen): void {
    const { failed, silence, loopDelay } = seen
    const last = this.#last
    if (failed === last.failed && silence === last.silence && loopDelay === last.loopDelay) return
    this.#last = seen
    for (const [word, value] of [failed, silence * 1_000, loopDelay * 1_000].entries())
      Atomics.store(this.#words, word, BigInt(Math.round(value)))
  }
}

type Numbers = [number, number, number]

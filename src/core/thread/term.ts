import { elapsed, timestampNow } from './timestamp.ts'

// Words of 64 bits: the version, which uses 32 of them; then twice a timestamp (nanoseconds, milliseconds) and the
// microseconds that remained at that time.
const WORDS = 7
const HALF = 3

/** The last version, of a lease that is gone or whose writer was stopped. */
const GONE = -1

/**
 * The time that remains of a lease. The thread that renews the lease writes it, and the other one reads it at any time,
 * without a lock or a message. A value is "this much remained at this timestamp". The reader subtracts the time since
 * then, so no thread depends on the clock of another.
 *
 * The next value is written to the half that is not in use, and then the version switches to it. So a reader never waits
 * for a writer, and a writer that ends in the middle changes nothing. Each lease has its own memory, so two leases never
 * share a slot.
 *
 * The writer writes before it sends a request, and sends it only if the value was written. `stop()` reads the last value
 * and ends the writes in one step, so no later request can make that value too large.
 */
export class SharedTerm {
  readonly memory: SharedArrayBuffer
  readonly #version: Int32Array
  readonly #words: BigInt64Array
  readonly #now: typeof timestampNow
  #seen = 0

  /** `memory`: the memory of another thread's `SharedTerm`. `now` is for tests. */
  constructor(memory: SharedArrayBuffer = new SharedArrayBuffer(8 * WORDS), now: typeof timestampNow = timestampNow) {
    this.memory = memory
    this.#version = new Int32Array(memory, 0, 1)
    this.#words = new BigInt64Array(memory)
    this.#now = now
  }

  /**
   * `remaining` returns milliseconds. It is called after the clocks are read, so time between the two is subtracted.
   * False: nothing was written, because the lease is gone or the writer was stopped.
   */
  write(remaining: () => number): boolean {
    const version = Atomics.load(this.#version, 0)
    if (version === GONE) return false
    const { monotonic, wall } = this.#now()
    const next = (version + 1) & 0x7fff_ffff
    const at = halfOf(next)
    Atomics.store(this.#words, at, monotonic)
    Atomics.store(this.#words, at + 1, BigInt(wall))
    Atomics.store(this.#words, at + 2, BigInt(Math.floor(remaining() * 1_000)))
    return Atomics.compareExchange(this.#version, 0, version, next) === version
  }

  /** The lease is gone. Later writes have no effect. */
  end(): void {
    Atomics.store(this.#version, 0, GONE)
  }

  /** Milliseconds that remain; `-Infinity` if the lease is gone; `undefined` if nothing was written since the last read. */
  read(): number | undefined {
    for (;;) {
      const version = Atomics.load(this.#version, 0)
      const remaining = this.#read(version)
      if (Atomics.load(this.#version, 0) !== version) continue // a newer value may be in this half
      this.#seen = version
      return remaining
    }
  }

  /** Reads the last value, as `read()` does. Later writes have no effect. */
  stop(): number | undefined {
    return this.#read(Atomics.exchange(this.#version, 0, GONE))
  }

  #read(version: number): number | undefined {
    if (version === this.#seen) return undefined
    if (version === GONE) return Number.NEGATIVE_INFINITY
    const at = halfOf(version)
    const monotonic = Atomics.load(this.#words, at)
    const wall = Number(Atomics.load(this.#words, at + 1))
    const remaining = Number(Atomics.load(this.#words, at + 2)) / 1_000
    return remaining - elapsed({ monotonic, wall }, this.#now())
  }
}

function halfOf(version: number): number {
  return 1 + (version & 1) * HALF
}

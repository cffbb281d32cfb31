import { elapsed, momentNow } from './moment.ts'

// 64 bits each: the version, of which 32 are used; then twice a moment (nanoseconds, milliseconds) and the microseconds
// that remained at it.
const WORDS = 7
const HALF = 3

/** A version that is followed by none. */
const GONE = -1

/**
 * What remains of a lease, told by the one thread that renews it and read by another at any time, without a lock or a
 * message. It says "at this moment by both clocks of the process, so much remained", so that no thread needs to know
 * how another counts: the reader takes off what has passed since then by either clock.
 *
 * The next value goes into the half that is not in use, then the version turns to it: a reader never waits for a writer,
 * and one that ended in the middle has changed nothing. Each lease has memory of its own, which ends with its last
 * user: there is no slot that two leases could have one after the other.
 */
export class SharedTerm {
  readonly memory: SharedArrayBuffer
  readonly #version: Int32Array
  readonly #words: BigInt64Array
  readonly #now: typeof momentNow
  #seen = 0

  /** In `memory` if it is given, of another thread's. `now` is for tests. */
  constructor(memory: SharedArrayBuffer = new SharedArrayBuffer(8 * WORDS), now: typeof momentNow = momentNow) {
    this.memory = memory
    this.#version = new Int32Array(memory, 0, 1)
    this.#words = new BigInt64Array(memory)
    this.#now = now
  }

  /** `remaining` answers milliseconds. It is called after the clocks are read: what passes between counts as passed. */
  write(remaining: () => number): void {
    const version = Atomics.load(this.#version, 0)
    if (version === GONE) return
    const { monotonic, wall } = this.#now()
    const next = (version + 1) & 0x7fff_ffff
    const at = halfOf(next)
    Atomics.store(this.#words, at, monotonic)
    Atomics.store(this.#words, at + 1, BigInt(wall))
    Atomics.store(this.#words, at + 2, BigInt(Math.floor(remaining() * 1_000)))
    Atomics.store(this.#version, 0, next)
  }

  /** The lease is gone, for ever. */
  end(): void {
    Atomics.store(this.#version, 0, GONE)
  }

  /**
   * The milliseconds that remain, counted from a moment not before the call; `-Infinity` if the lease is gone;
   * `undefined` if nothing was written since the last `read`.
   */
  read(): number | undefined {
    for (;;) {
      const version = Atomics.load(this.#version, 0)
      if (version === this.#seen) return undefined
      const at = halfOf(version)
      const monotonic = Atomics.load(this.#words, at)
      const wall = Number(Atomics.load(this.#words, at + 1))
      const remaining = Number(Atomics.load(this.#words, at + 2)) / 1_000
      if (Atomics.load(this.#version, 0) !== version) continue // the half may be that of the next but one
      this.#seen = version
      return version === GONE ? Number.NEGATIVE_INFINITY : remaining - elapsed({ monotonic, wall }, this.#now())
    }
  }
}

function halfOf(version: number): number {
  return 1 + (version & 1) * HALF
}

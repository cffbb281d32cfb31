import { events } from '../../contract/events.ts'
import type { Clock } from '../../contract/time.ts'

/** What is told only if the main thread listens for it, so that nothing is told for nobody. */
const TOLD = ['heartbeat', 'heartbeat_failed', 'ttl_too_short', 'batch_sent', 'ghost_refused'] as const

type Told = (typeof TOLD)[number]

/** The main thread's proof that its event loop turns: the time, in memory that it shares with the heartbeat's thread. */
export class Liveness {
  readonly memory: SharedArrayBuffer
  /** The nanoseconds of `process.hrtime` at the last proof, and a bit for each event that is listened for. */
  readonly #words: BigInt64Array
  readonly #now: () => bigint

  /** In `memory` if it is given, of another thread's. `now` is for tests. */
  constructor(memory: SharedArrayBuffer = new SharedArrayBuffer(16), now: () => bigint = process.hrtime.bigint) {
    this.memory = memory
    this.#words = new BigInt64Array(memory)
    this.#now = now
  }

  prove(isHeard: (name: Told) => boolean): void {
    const bits = TOLD.reduce((bits, name, index) => bits | (isHeard(name) ? 1 << index : 0), 0)
    Atomics.store(this.#words, 1, BigInt(bits))
    Atomics.store(this.#words, 0, this.#now())
  }

  /** Milliseconds since the last proof. */
  get silence(): number {
    const proven = Atomics.load(this.#words, 0) // first: it may be proven between the two
    return Number(this.#now() - proven) / 1e6
  }

  /** Did anybody listen for it at the last proof? */
  isHeard(name: Told): boolean {
    return (Number(Atomics.load(this.#words, 1)) & (1 << TOLD.indexOf(name))) !== 0
  }
}

/** Milliseconds between two proofs: a tenth of the shortest limit, or this. */
const LONGEST_INTERVAL = 500

/** The main thread's side: one timer that proves again and again, and none when there is nothing to prove it for. */
export class Proof {
  readonly #clock: Clock
  readonly #liveness: Liveness
  readonly #isWanted: () => boolean
  #interval = LONGEST_INTERVAL
  #stopTimer: (() => void) | undefined

  constructor(clock: Clock, liveness: Liveness, isWanted: () => boolean) {
    this.#clock = clock
    this.#liveness = liveness
    this.#isWanted = isWanted
  }

  /** Proves now. */
  give(): void {
    this.#liveness.prove(name => events[name].hasSubscribers)
  }

  /** Proves now, and while it is wanted ten times in `limit` ms. */
  keep(limit: number): void {
    const isKept = this.#stopTimer && limit / 10 >= this.#interval
    this.#interval = Math.min(limit / 10, this.#interval)
    if (isKept) this.give()
    else this.#repeat()
  }

  stop(): void {
    this.#stopTimer?.()
    this.#stopTimer = undefined
    this.#interval = LONGEST_INTERVAL
  }

  #repeat(): void {
    this.#stopTimer?.()
    this.give()
    if (this.#isWanted()) this.#stopTimer = this.#clock.after(this.#interval, () => this.#repeat(), true)
    else this.stop()
  }
}

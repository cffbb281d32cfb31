import { events } from '../../contract/events.ts'
import type { Clock } from '../../contract/time.ts'
import { Lateness } from '../lateness.ts'

/** Events that the worker sends only while the main thread has subscribers for them. */
const FORWARDED = ['heartbeat', 'heartbeat_failed', 'ttl_too_short', 'batch_sent', 'stale_request_refused'] as const

type Forwarded = (typeof FORWARDED)[number]

/** The main thread's proof that its event loop turns: a time in memory that it shares with the worker. */
export class Liveness {
  readonly memory: SharedArrayBuffer
  /** The nanoseconds of `process.hrtime` at the last proof, and a bit for each event that has subscribers. */
  readonly #words: BigInt64Array
  readonly #now: () => bigint

  /** `memory`: the memory of another thread's `Liveness`. `now` is for tests. */
  constructor(memory: SharedArrayBuffer = new SharedArrayBuffer(16), now: () => bigint = process.hrtime.bigint) {
    this.memory = memory
    this.#words = new BigInt64Array(memory)
    this.#now = now
  }

  prove(isSubscribed: (name: Forwarded) => boolean): void {
    const bits = FORWARDED.reduce((bits, name, index) => bits | (isSubscribed(name) ? 1 << index : 0), 0)
    Atomics.store(this.#words, 1, BigInt(bits))
    Atomics.store(this.#words, 0, this.#now())
  }

  /** Milliseconds since the last proof. */
  get sinceProof(): number {
    const proven = Atomics.load(this.#words, 0) // first: another proof may come between the two reads
    return Number(this.#now() - proven) / 1e6
  }

  /** Did the event have subscribers at the last proof? */
  isSubscribed(name: Forwarded): boolean {
    return (Number(Atomics.load(this.#words, 1)) & (1 << FORWARDED.indexOf(name))) !== 0
  }
}

/** The longest time in milliseconds between two proofs. The time is a tenth of a `maxBlocked` if that is shorter. */
const LONGEST_INTERVAL = 500

/** The main thread's side: one timer that repeats the proof while a lease needs it. */
export class Proof {
  readonly #clock: Clock
  readonly #liveness: Liveness
  readonly #isNeeded: () => boolean
  #interval = LONGEST_INTERVAL
  readonly #lateness = new Lateness()
  #stopTimer: (() => void) | undefined

  constructor(clock: Clock, liveness: Liveness, isNeeded: () => boolean) {
    this.#clock = clock
    this.#liveness = liveness
    this.#isNeeded = isNeeded
  }

  /** Gives a proof now. */
  give(): void {
    this.#liveness.prove(name => events[name].hasSubscribers)
  }

  /** Gives a proof now, and ten times in `limit` ms while it is needed. */
  keep(limit: number): void {
    const isKept = this.#stopTimer && limit / 10 >= this.#interval
    this.#interval = Math.min(limit / 10, this.#interval)
    if (isKept) this.give()
    else this.#repeat()
  }

  stop(): void {
    this.#stopTimer?.()
    this.#stopTimer = undefined
    this.#lateness.end()
    this.#interval = LONGEST_INTERVAL
  }

  /** At least how many milliseconds this thread was just blocked. */
  get blocked(): number {
    return this.#lateness.at(this.#clock.now())
  }

  #repeat(): void {
    this.#stopTimer?.()
    this.give()
    if (!this.#isNeeded()) {
      this.stop()
      return
    }
    this.#stopTimer = this.#clock.after(this.#interval, () => this.#onTime(), true)
    this.#lateness.expect(this.#clock.now() + this.#interval)
  }

  #onTime(): void {
    this.#lateness.fire(this.#clock.now())
    this.#repeat()
  }
}

/**
 * What is known of a server's clock: the milliseconds to add to `performance.now()`. Our monotonic clock stops while the
 * machine sleeps, and nobody can set it. So a wrong estimate makes a request stale too early at worst, and never lets a
 * stale one pass.
 */
export class ServerClock {
  readonly #resolution: number
  #offset = Number.POSITIVE_INFINITY
  #roundTrip = 0

  /** `resolution`: milliseconds by which the server rounds its time down. */
  constructor(resolution: number = 0) {
    this.#resolution = resolution
  }

  /** Milliseconds that the last request took; 0 before the first answer. */
  get roundTrip(): number {
    return this.#roundTrip
  }

  /** The server's time at a moment of `performance.now()`; `Infinity` before the first answer. */
  at(moment: number): number {
    return moment + this.#offset
  }

  /**
   * The server showed `time` at some moment between `sent` and `received`. An estimate that fits is kept; otherwise the
   * lowest that fits is taken.
   */
  learn(time: number, sent: number, received: number = performance.now()): void {
    this.#roundTrip = received - sent
    if (time - received > this.#offset) this.#offset = time - received
    else this.lower(time, sent, received)
  }

  /** Only corrects an estimate that is too high: for a clock that stands for several servers. */
  lower(time: number, sent: number, received: number = performance.now()): void {
    this.#roundTrip = received - sent
    if (this.#offset > time + this.#resolution - sent) this.#offset = time - received
  }
}

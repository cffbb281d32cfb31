/**
 * An estimate of a server's clock: the milliseconds to add to `performance.now()`. Our monotonic clock stops while the
 * machine sleeps, and nobody can set it. So a wrong estimate may make a request stale too early, but never lets a stale
 * request pass.
 */
export class ServerClock {
  readonly #resolution: number
  #offset = Number.POSITIVE_INFINITY
  #roundTrip = 0

  /** `resolution`: the milliseconds by which the server rounds its time down. */
  constructor(resolution: number = 0) {
    this.#resolution = resolution
  }

  /** Milliseconds that the last request took. 0: there was no answer yet. */
  get roundTrip(): number {
    return this.#roundTrip
  }

  /** The server's time at a time of `performance.now()`. `Infinity`: there was no answer yet. */
  at(moment: number): number {
    return moment + this.#offset
  }

  /**
   * Learns that the server's time was `time` between `sent` and `received`. An estimate that agrees is kept. Otherwise the
   * lowest one that agrees is used.
   */
  learn(time: number, sent: number, received: number = performance.now()): void {
    this.#roundTrip = received - sent
    if (time - received > this.#offset) this.#offset = time - received
    else this.lower(time, sent, received)
  }

  /** Only lowers an estimate that is too high. It is for a clock that serves several servers. */
  lower(time: number, sent: number, received: number = performance.now()): void {
    this.#roundTrip = received - sent
    if (this.#offset > time + this.#resolution - sent) this.#offset = time - received
  }
}

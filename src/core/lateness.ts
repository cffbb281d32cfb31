/** Measures how late a repeated timer fires. It is late if the event loop was blocked. */
export class Lateness {
  #dueAt = Number.POSITIVE_INFINITY
  /** The lateness in milliseconds when the timer last fired. */
  #last = 0

  /** Called when the timer is set: it is due at this time of the clock. */
  expect(dueAt: number): void {
    this.#dueAt = dueAt
  }

  /** Called when the timer has fired. */
  fire(now: number): void {
    this.#last = now - this.#dueAt
  }

  /** Called when the timer is cancelled. */
  end(): void {
    this.#dueAt = Number.POSITIVE_INFINITY
    this.#last = 0
  }

  /** Milliseconds by which the timer is late now, or was late when it last fired. */
  at(now: number): number {
    return Math.max(this.#last, now - this.#dueAt)
  }
}

/** How late a timer fires that is set again and again: the event loop does not turn while it is blocked. */
export class Lateness {
  #dueAt = Number.POSITIVE_INFINITY
  /** Of the last time that it fired. */
  #last = 0

  /** The timer is set, and is due at this time of the clock. */
  expect(dueAt: number): void {
    this.#dueAt = dueAt
  }

  /** The timer has fired. */
  fire(now: number): void {
    this.#last = now - this.#dueAt
  }

  /** The timer is off. */
  end(): void {
    this.#dueAt = Number.POSITIVE_INFINITY
    this.#last = 0
  }

  /** Milliseconds for which it is late, or was when it fired last. */
  at(now: number): number {
    return Math.max(this.#last, now - this.#dueAt)
  }
}

import type { Connection } from './connection.ts'
import { afterReads } from './timeouts.ts'

/** The longest time between two attempts, in milliseconds. */
const LONGEST_PAUSE = 1_000

/**
 * Opens a connection. While an attempt hangs, another one is started in addition: after `patience` ms, then after twice the
 * last pause, up to a second. The first success counts. The opening fails when the first attempt fails, after 5 s at the
 * latest.
 */
export class Opening<Opened extends Connection> {
  readonly connection: Promise<Opened>
  readonly #open: (closing: AbortSignal) => Promise<Opened>
  readonly #over = new AbortController()
  #patience: number
  #attempts = 0
  #latest = 0
  #stopTimer: () => void = () => {}
  #error: unknown
  readonly #resolve: (connection: Opened) => void
  readonly #reject: (error: unknown) => void

  constructor(open: (closing: AbortSignal) => Promise<Opened>, patience: number) {
    this.#open = open
    this.#patience = patience
    const { promise, resolve, reject } = Promise.withResolvers<Opened>()
    this.connection = promise
    this.#resolve = resolve
    this.#reject = reject
    this.#attempt()
  }

  /** Shortens the patience to that of a request that now waits too, in milliseconds. */
  hurry(patience: number): void {
    if (patience >= this.#patience) return
    this.#patience = patience
    this.#schedule()
  }

  /** Ends all pending attempts. */
  stop(): void {
    this.#stopTimer()
    this.#over.abort()
  }

  #attempt(): void {
    this.#attempts += 1
    this.#latest = performance.now()
    const isFirst = this.#attempts === 1
    this.#open(this.#over.signal).then(
      connection => this.#succeed(connection),
      error => this.#fail(error, isFirst),
    )
    this.#schedule()
  }

  #schedule(): void {
    this.#stopTimer()
    if (this.#over.signal.aborted) return
    const pause = Math.min(this.#patience * 2 ** (this.#attempts - 1), LONGEST_PAUSE)
    const delay = Math.max(this.#latest + pause - performance.now(), 0)
    this.#stopTimer = afterReads(delay, () => this.#attempt())
  }

  #succeed(connection: Opened): void {
    if (this.#over.signal.aborted) connection.close()
    else this.#resolve(connection)
    this.stop()
  }

  #fail(error: unknown, isFirst: boolean): void {
    // The error of a later attempt says more than the first attempt, which hung.
    this.#error ??= error
    if (!isFirst) return
    this.#reject(this.#error)
    this.stop()
  }
}

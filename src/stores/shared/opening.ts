import type { AnySession } from './link.ts'

/** The longest time between two attempts, in milliseconds. */
const LONGEST_PAUSE = 1_000

/**
 * Opens a session. While an attempt hangs, another is started in addition: after `patience` ms, then after twice the
 * last pause, up to a second. The first success counts. The opening fails when the first attempt fails, after 5 s at the
 * latest.
 */
export class Opening<Session extends AnySession> {
  readonly session: Promise<Session>
  readonly #open: (closing: AbortSignal) => Promise<Session>
  readonly #over = new AbortController()
  #patience: number
  #attempts = 0
  #latest = 0
  #timer: NodeJS.Timeout | undefined
  #error: unknown
  readonly #resolve: (session: Session) => void
  readonly #reject: (error: unknown) => void

  constructor(open: (closing: AbortSignal) => Promise<Session>, patience: number) {
    this.#open = open
    this.#patience = patience
    const { promise, resolve, reject } = Promise.withResolvers<Session>()
    this.session = promise
    this.#resolve = resolve
    this.#reject = reject
    this.#attempt()
  }

  /** For a waiting request that has only this patience, in milliseconds. */
  hurry(patience: number): void {
    if (patience >= this.#patience) return
    this.#patience = patience
    this.#schedule()
  }

  /** Ends all attempts that are pending. */
  stop(): void {
    clearTimeout(this.#timer)
    this.#over.abort()
  }

  #attempt(): void {
    this.#attempts += 1
    this.#latest = performance.now()
    const isFirst = this.#attempts === 1
    this.#open(this.#over.signal).then(
      session => this.#succeed(session),
      error => this.#fail(error, isFirst),
    )
    this.#schedule()
  }

  #schedule(): void {
    clearTimeout(this.#timer)
    if (this.#over.signal.aborted) return
    const pause = Math.min(this.#patience * 2 ** (this.#attempts - 1), LONGEST_PAUSE)
    const delay = Math.max(this.#latest + pause - performance.now(), 0)
    // An answer that came while the event loop was blocked is read first.
    this.#timer = setTimeout(() => setImmediate(() => this.#over.signal.aborted || this.#attempt()), delay).unref()
  }

  #succeed(session: Session): void {
    if (this.#over.signal.aborted) session.link.close()
    else this.#resolve(session)
    this.stop()
  }

  #fail(error: unknown, isFirst: boolean): void {
    // The refusal of a later attempt says more than the first attempt, which hung.
    this.#error ??= error
    if (!isFirst) return
    this.#reject(this.#error)
    this.stop()
  }
}

/** Claims that join queues at once. They leave half of the connections to other requests, such as renewals. */
const AT_ONCE = 16

/**
 * Lets few claims join queues at once, in the order of their calls. Joining takes a grant and a transaction. If all of a
 * thousand claims sent their grant first, a slow server would reach no transaction before the core gives up and asks
 * again, so none would ever join.
 */
export class Admission {
  #free = AT_ONCE
  readonly #waiting = new Set<() => void>()

  /** Rejects with the reason of `signal` if that aborts before `join` is called. */
  async run<Answer>(signal: AbortSignal, join: () => Promise<Answer>): Promise<Answer> {
    await this.#enter(signal)
    try {
      return await join()
    } finally {
      const [next] = this.#waiting
      if (next) next()
      else this.#free += 1
    }
  }

  #enter(signal: AbortSignal): Promise<void> | undefined {
    if (this.#free > 0) {
      this.#free -= 1
      return
    }
    return new Promise((resolve, reject) => {
      const giveUp = (): void => {
        this.#waiting.delete(admit)
        reject(signal.reason)
      }
      const admit = (): void => {
        this.#waiting.delete(admit)
        signal.removeEventListener('abort', giveUp)
        resolve()
      }
      this.#waiting.add(admit)
      signal.addEventListener('abort', giveUp, { once: true })
    })
  }
}

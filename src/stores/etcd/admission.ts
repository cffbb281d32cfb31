/** Claims that join queues at once. They leave half of the connections to other requests, such as renewals. */
const AT_ONCE = 16

/**
 * Lets few claims join queues at once, in the order of their first calls. Joining takes a grant and a transaction. If all of
 * a thousand claims sent their grant first, a slow server would reach no transaction before the core gives up and asks
 * again, so none would ever join.
 */
export class Admission {
  #free = AT_ONCE
  /** By id, in order. Between two calls a claim keeps its position, but is not admitted. */
  readonly #waiting = new Map<string, (() => void) | undefined>()

  /**
   * `undefined`: it was not admitted within `patience` ms, and is to call again. Rejects with the reason of `signal` if that
   * aborts before `join` is called.
   */
  async run<Answer>(
    id: string,
    patience: number,
    signal: AbortSignal,
    join: () => Promise<Answer>,
  ): Promise<{ readonly answer: Answer } | undefined> {
    if (this.#free > 0) this.#free -= 1
    else if (!(await this.#isAdmitted(id, patience, signal))) return undefined
    try {
      this.forget(id)
      return { answer: await join() }
    } finally {
      this.#admitNext()
    }
  }

  /** The claim was withdrawn. */
  forget(id: string): void {
    this.#waiting.delete(id)
  }

  #admitNext(): void {
    for (const admit of this.#waiting.values()) if (admit) return void admit()
    this.#free += 1
  }

  #isAdmitted(id: string, patience: number, signal: AbortSignal): Promise<boolean> {
    return new Promise((resolve, reject) => {
      const end = (): void => {
        clearTimeout(timer)
        signal.removeEventListener('abort', giveUp)
      }
      const giveUp = (): void => {
        end()
        this.#waiting.delete(id)
        reject(signal.reason)
      }
      const pause = (): void => {
        end()
        this.#waiting.set(id, undefined)
        resolve(false)
      }
      const admit = (): void => {
        end()
        this.#waiting.delete(id)
        resolve(true)
      }
      const timer = setTimeout(pause, patience).unref()
      this.#waiting.set(id, admit)
      signal.addEventListener('abort', giveUp, { once: true })
    })
  }
}

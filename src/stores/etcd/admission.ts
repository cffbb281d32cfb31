/**
 * Lets only a few claims send requests at once, in the order of their first calls. If a thousand claims sent requests at
 * once, a slow server would finish none before the core gives up and asks again.
 */
export class Admission {
  readonly #most: number
  #free: number
  /** The calls that wait, by the id of their claim, in the order of claims. Without a call, a claim keeps its turn. */
  readonly #waiting = new Map<string, Set<() => void>>()

  constructor(most: number) {
    this.#most = most
    this.#free = most
  }

  /** Is no claim admitted or waiting? */
  get isIdle(): boolean {
    return this.#free === this.#most && this.#waiting.size === 0
  }

  /**
   * Resolves to `undefined` if the claim was not admitted within `patience` ms: it must call again. Rejects with the reason
   * of `signal` if that aborts before `join` is called.
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
      this.#leave(id)
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
    for (const [admit] of this.#waiting.values()) if (admit) return void admit()
    this.#free += 1
  }

  /** Its claim is admitted, or was given up, and has no turn any more unless other calls of it wait. */
  #leave(id: string): void {
    if (this.#waiting.get(id)?.size === 0) this.forget(id)
  }

  #isAdmitted(id: string, patience: number, signal: AbortSignal): Promise<boolean> {
    const calls = this.#waiting.get(id) ?? new Set()
    this.#waiting.set(id, calls)
    return new Promise((resolve, reject) => {
      const end = (): void => {
        clearTimeout(timer)
        signal.removeEventListener('abort', giveUp)
        calls.delete(admit)
      }
      const giveUp = (): void => {
        end()
        this.#leave(id)
        reject(signal.reason)
      }
      const pause = (): void => {
        end()
        resolve(false)
      }
      const admit = (): void => {
        end()
        resolve(true)
      }
      const timer = setTimeout(pause, patience).unref()
      calls.add(admit)
      signal.addEventListener('abort', giveUp, { once: true })
    })
  }
}

/** The admissions to the names that are in use. */
export class Admissions {
  readonly #most: number
  readonly #byName = new Map<string, Admission>()

  /** `most`: the number of claims that one name admits at once. */
  constructor(most: number) {
    this.#most = most
  }

  /** The number of names in use. */
  get size(): number {
    return this.#byName.size
  }

  /** See `Admission.run`. */
  async run<Answer>(
    name: string,
    id: string,
    patience: number,
    signal: AbortSignal,
    join: () => Promise<Answer>,
  ): Promise<{ readonly answer: Answer } | undefined> {
    const admission = this.#byName.get(name) ?? new Admission(this.#most)
    this.#byName.set(name, admission)
    try {
      return await admission.run(id, patience, signal, join)
    } finally {
      this.#dropIdle(name)
    }
  }

  /** The claim was withdrawn. */
  forget(name: string, id: string): void {
    this.#byName.get(name)?.forget(id)
    this.#dropIdle(name)
  }

  #dropIdle(name: string): void {
    if (this.#byName.get(name)?.isIdle) this.#byName.delete(name)
  }
}

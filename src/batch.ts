interface Entry<Request, Answer> {
  readonly request: Request
  readonly signal: AbortSignal
  readonly resolve: (answer: Answer) => void
  readonly reject: (error: unknown) => void
}

/**
 * Joins the calls that are made while one is in flight, or in one turn of the event loop, into the next: a thousand
 * claims cost a few round trips or transactions. One bad request never fails its neighbours.
 */
export class Batch<Request, Answer> {
  readonly #limit: number
  readonly #send: (requests: Request[]) => Promise<PromiseSettledResult<Answer>[]>
  #waiting: Entry<Request, Answer>[] = []
  #running = false

  /**
   * `send` answers each request at its own index; if it rejects, all that it was given reject with its error.
   * `limit` is the largest number of requests sent at once.
   */
  constructor(limit: number, send: (requests: Request[]) => Promise<PromiseSettledResult<Answer>[]>) {
    this.#limit = limit
    this.#send = send
  }

  /** A request whose `signal` has aborted by the time its turn comes is not sent and rejects with the reason. */
  add(request: Request, signal: AbortSignal): Promise<Answer> {
    return new Promise((resolve, reject) => {
      this.#waiting.push({ request, signal, resolve, reject })
      if (this.#running) return
      this.#running = true
      void this.#run()
    })
  }

  async #run(): Promise<void> {
    await Promise.resolve() // what else is asked in this turn of the event loop joins
    while (this.#waiting.length > 0) await this.#flush(this.#waiting.splice(0, this.#limit))
    this.#running = false
  }

  async #flush(entries: Entry<Request, Answer>[]): Promise<void> {
    const live = entries.filter(entry => {
      if (entry.signal.aborted) entry.reject(entry.signal.reason)
      return !entry.signal.aborted
    })
    if (live.length === 0) return
    try {
      const answers = await this.#send(live.map(entry => entry.request))
      live.forEach((entry, index) => {
        const answer = answers[index]
        if (answer?.status === 'fulfilled') entry.resolve(answer.value)
        else entry.reject(answer?.reason ?? new Error('a batch has more requests than answers'))
      })
    } catch (error) {
      for (const entry of live) entry.reject(error)
    }
  }
}

import { pause, request } from '../contract/request.ts'
import { type Clock, requestLimit } from '../contract/time.ts'

/**
 * Knows until when failed requests of one lease may still take effect: a store refuses a request that is older than
 * `requestLimit`. A request that must take effect last is sent after that.
 */
export class StaleRequests {
  #until = Number.NEGATIVE_INFINITY
  #failure: unknown
  #wakes: Set<() => void> | undefined

  /** Sends a request, and counts it as stale if it fails. */
  async request<Answer>(clock: Clock, ttl: number, send: (signal: AbortSignal) => Promise<Answer>): Promise<Answer> {
    const sent = clock.now()
    try {
      return await request(clock, requestLimit(ttl), send)
    } catch (error) {
      this.add(sent, ttl, error)
      throw error
    }
  }

  /** Adds a failed request for this ttl that was sent at `sent`. */
  add(sent: number, ttl: number, failure?: unknown): void {
    this.#failure = failure ?? this.#failure
    this.#until = Math.max(this.#until, sent + requestLimit(ttl))
  }

  arePossible(clock: Clock): boolean {
    return this.#until > clock.now()
  }

  /**
   * Resolves when no stale request can take effect, or after `end()`. If others have failed by then, it rejects with the
   * last failure: the store may be down for long.
   */
  async over(clock: Clock): Promise<void> {
    const latest = this.#until
    while (this.arePossible(clock)) {
      if (clock.now() >= latest) throw this.#failure
      let wake = (): void => {}
      const arm = (end: () => void): void => {
        wake = end
        this.#wakes = (this.#wakes ?? new Set()).add(end)
      }
      await pause(clock, latest - clock.now(), { arm })
      this.#wakes?.delete(wake)
    }
  }

  /** Ends the wait for stale requests. */
  end(): void {
    this.#until = Number.NEGATIVE_INFINITY
    for (const wake of this.#wakes ?? []) wake()
  }
}

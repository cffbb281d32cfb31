import { pause, request } from '../contract/request.ts'
import { type Clock, requestLimit } from '../contract/time.ts'

/**
 * Until when copies of the failed requests of one lease may still be carried out: stores refuse what is older than
 * `requestLimit`. What must have the last word is sent after that.
 */
export class LateCopies {
  #until = Number.NEGATIVE_INFINITY
  #wakes: Set<() => void> | undefined

  /** A request whose copies may still be carried out if it fails. */
  async request<Answer>(clock: Clock, ttl: number, send: (signal: AbortSignal) => Promise<Answer>): Promise<Answer> {
    const sent = clock.now()
    try {
      return await request(clock, requestLimit(ttl), send)
    } catch (error) {
      this.add(sent, ttl)
      throw error
    }
  }

  /** A request for this ttl that left at `sent` has failed. */
  add(sent: number, ttl: number): void {
    this.#until = Math.max(this.#until, sent + requestLimit(ttl))
  }

  /** Can one still be carried out? */
  arePossible(clock: Clock): boolean {
    return this.#until > clock.now()
  }

  /** Resolves when none can be carried out any more, or when they matter no more. */
  async over(clock: Clock): Promise<void> {
    while (this.arePossible(clock)) {
      let wake = (): void => {}
      const arm = (end: () => void): void => {
        wake = end
        this.#wakes = (this.#wakes ?? new Set()).add(end)
      }
      await pause(clock, this.#until - clock.now(), { arm })
      this.#wakes?.delete(wake)
    }
  }

  /** They matter no more. */
  end(): void {
    this.#until = Number.NEGATIVE_INFINITY
    for (const wake of this.#wakes ?? []) wake()
  }
}

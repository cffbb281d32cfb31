import { inRootContext } from '../../contract/root-context.ts'
import type { Claim, Wake } from '../../contract/store.ts'
import { type Clock, requestLimit } from '../../contract/time.ts'
import { type Name, positionLifetime } from '../rules/name.ts'
import { NEVER } from '../wire/timeouts.ts'
import type { Request } from './request.ts'

/** Milliseconds between two reads of the first two waiters, which look for a change. Those behind read more rarely. */
export const POLL = 500

/** The share of the time for which a position is kept after which it is kept again: less than a third (R15). */
const SHARE = 0.3

interface Asked {
  ask<Answer>(request: Request<Answer>): Promise<Answer>
}

/** Calls `changed` whenever the record may have changed. */
type Listen = (changed: () => void, signal: AbortSignal) => Promise<void>

interface Waiter {
  readonly wake: Wake
  /** Milliseconds for which its position is kept. */
  readonly lifetime: number
}

/**
 * The waiters of this process for one name. One look at the record serves all of them: it keeps their positions, and wakes
 * those that may be granted. A look is due in every third of the time for which a position is kept; when a lease may have
 * ended; when the register says that the record has changed; and without such a register every 500 ms, and more rarely for
 * the third and later waiters. The first two look at least once in every grace period, which keeps the order.
 */
export class Waiting {
  readonly #name: Asked
  readonly #listen: Listen | undefined
  readonly #clock: Clock
  readonly #onEmpty: () => void
  readonly #waiters = new Map<string, Waiter>()
  #subscription: { readonly controller: AbortController; readonly armed: Promise<void> } | undefined
  #isPushed = false
  #isLooking = false
  #timerAt = Number.POSITIVE_INFINITY
  #stopTimer: () => void = () => {}

  /** `onEmpty` is called when the last waiter has left. */
  constructor(name: Asked, listen: Listen | undefined, clock: Clock, onEmpty: () => void) {
    this.#name = name
    this.#listen = listen
    this.#clock = clock
    this.#onEmpty = onEmpty
  }

  /** Wakes the claim when it should ask, from now on until `signal` aborts. Resolves once that is so. */
  async add({ id, ttl }: Claim, wake: Wake, signal: AbortSignal): Promise<void> {
    this.#waiters.set(id, { wake, lifetime: positionLifetime(ttl) })
    const remove = (): void => {
      if (this.#waiters.get(id)?.wake !== wake) return
      this.#waiters.delete(id)
      if (this.#waiters.size === 0) this.#end()
    }
    signal.addEventListener('abort', remove, { once: true })
    this.#lookAt(this.#clock.now() + SHARE * this.#leastLifetime) // arming may take longer than its position is kept
    await inRootContext(() => this.#subscribe())
    this.#lookAt(0) // what happened since the last answer was not seen
  }

  wake(id: string, delay: number): void {
    this.#waiters.get(id)?.wake(delay)
  }

  close(): void {
    const waiters = [...this.#waiters.values()]
    this.#waiters.clear()
    this.#end()
    for (const { wake } of waiters) wake()
  }

  async #subscribe(): Promise<void> {
    const listen = this.#listen
    if (!listen) return
    if (!this.#subscription) {
      const controller = new AbortController()
      const { signal } = controller
      const changed = (): void => {
        if (!signal.aborted) this.#lookAt(0)
      }
      const armed = listen(changed, signal).then(
        () => {
          this.#isPushed = !signal.aborted
        },
        () => {
          controller.abort()
          if (this.#subscription?.controller === controller) this.#subscription = undefined // polled until the next waiter
        },
      )
      this.#subscription = { controller, armed }
    }
    await this.#subscription.armed
  }

  #end(): void {
    this.#stopTimer()
    this.#timerAt = Number.POSITIVE_INFINITY
    this.#subscription?.controller.abort()
    this.#subscription = undefined
    this.#isPushed = false
    this.#onEmpty()
  }

  /** Looks at this time, unless an earlier look is due. */
  #lookAt(time: number): void {
    if (this.#waiters.size === 0 || time >= this.#timerAt) return
    this.#stopTimer()
    this.#timerAt = time
    if (this.#isLooking) return // then it is set when that look is over
    const delay = Math.max(time - this.#clock.now(), 0)
    this.#stopTimer = inRootContext(() => this.#clock.after(delay, () => void this.#look(), true))
  }

  async #look(): Promise<void> {
    this.#isLooking = true
    this.#timerAt = Number.POSITIVE_INFINITY
    const least = this.#leastLifetime
    let next = this.#clock.now() + SHARE * least
    try {
      next = await this.#name.ask({
        signal: NEVER,
        limit: requestLimit(least),
        isRepeatable: true,
        looks: true,
        decide: rules => this.#see(rules),
      })
    } catch {
      for (const { wake } of [...this.#waiters.values()]) wake() // they ask, and find out the reason
    }
    this.#isLooking = false
    const due = Math.min(next, this.#timerAt)
    this.#timerAt = Number.POSITIVE_INFINITY
    this.#lookAt(due)
  }

  /** Keeps the positions and wakes who should ask. Returns the time of the next look. */
  #see(rules: Name): number {
    for (const id of rules.keep([...this.#waiters.keys()])) this.wake(id, 0)
    for (const [id, delay] of rules.wakes(undefined, true)) this.wake(id, delay)
    const { holders, waiters } = rules.state
    const position = waiters.findIndex(({ id }) => this.#waiters.has(id))
    const soonest = this.#isPushed ? rules.now : rules.now + POLL
    const pause = this.#isPushed ? Number.POSITIVE_INFINITY : POLL * Math.max(position, 1)
    const ends = Math.min(...holders.map(({ expires }) => expires))
    return Math.min(Math.max(Math.min(ends, rules.now + pause), soonest), rules.now + SHARE * this.#leastLifetime)
  }

  get #leastLifetime(): number {
    let least = Number.POSITIVE_INFINITY
    for (const { lifetime } of this.#waiters.values()) least = Math.min(least, lifetime)
    return least
  }
}

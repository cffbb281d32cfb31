import { inRootContext } from '../../../contract/root-context.ts'
import type { Busy, Claim, Grant } from '../../../contract/store.ts'
import { LONGEST_REQUEST } from '../../../contract/time.ts'
import { LONGEST_DELAY } from '../../../contract/timers.ts'
import type { Session } from './session.ts'

/** A key that a claim of this process has requested, holds, or is releasing. */
export interface Holding {
  claim: Claim
  readonly key: string
  state: 'asked' | 'held' | 'leaving'
  /** The answer to the request for the key. */
  answer: Promise<Grant | Busy> | undefined
  session: Session | undefined
  /** Has the server locked it? `undefined`: unknown. */
  isLocked: boolean | undefined
  token: bigint
  /** The end of the lease, by `performance.now()`. */
  expires: number
  /** The unlock request, once it has been sent. */
  left: Promise<void> | undefined
  onLost: (() => void) | undefined
}

/**
 * The keys of this process, each with the one claim that has it. A lease that is not renewed is released at the end of its
 * ttl, although its session continues. A busy event loop delays this release.
 */
export class Holdings {
  readonly #giveBack: (holding: Holding) => void
  readonly #holdings = new Map<string, Holding>()
  /** The ids of claims that were withdrawn before they arrived, and the time until which each may still arrive. */
  readonly #withdrawn = new Map<string, number>()
  #onIdle: (() => void) | undefined
  #timer: NodeJS.Timeout | undefined
  #timerAt = Number.POSITIVE_INFINITY

  constructor(giveBack: (holding: Holding) => void) {
    this.#giveBack = giveBack
  }

  of(key: string): Holding | undefined {
    const holding = this.#holdings.get(key)
    if (holding?.state === 'held') this.#expire(holding)
    return holding
  }

  held(key: string, id: string): Holding | undefined {
    const holding = this.of(key)
    return holding?.state === 'held' && holding.claim.id === id ? holding : undefined
  }

  isHeld(holding: Holding): boolean {
    return this.held(holding.key, holding.claim.id) === holding
  }

  /** Requests the key for a claim. No other claim gets it until `take` has settled. Then the key is held or released. */
  ask(claim: Claim, key: string, take: (holding: Holding) => Promise<Grant | Busy>): Promise<Grant | Busy> {
    const holding: Holding = {
      claim,
      key,
      state: 'asked',
      answer: undefined,
      session: undefined,
      isLocked: undefined,
      token: 0n,
      expires: 0,
      left: undefined,
      onLost: undefined,
    }
    this.#holdings.set(key, holding)
    const answer = take(holding)
    holding.answer = answer
    return answer
  }

  hold(holding: Holding, token: bigint, expires: number): void {
    holding.state = 'held'
    holding.token = token
    holding.expires = expires
    this.#look(expires)
  }

  prolong(holding: Holding, ttl: number, from: number): void {
    holding.claim = { ...holding.claim, ttl }
    holding.expires = from + ttl
    this.#look(holding.expires)
  }

  remove(holding: Holding): void {
    if (this.#holdings.get(holding.key) === holding) this.#holdings.delete(holding.key)
    if (this.#holdings.size === 0) this.#onIdle?.()
  }

  /** Calls `onIdle` as soon as nothing is held. */
  onceIdle(onIdle: () => void): void {
    // A key that was only requested is no longer needed.
    if ([...this.#holdings.values()].every(({ state }) => state === 'asked')) onIdle()
    else this.#onIdle = onIdle
  }

  /** Removes the keys of a session that has ended. */
  lose(session: Session): void {
    for (const holding of [...this.#holdings.values()]) {
      if (holding.session !== session) continue
      this.remove(holding)
      if (holding.state === 'held') holding.onLost?.()
    }
  }

  withdraw(id: string): void {
    const now = performance.now()
    for (const [old, until] of this.#withdrawn) {
      if (until > now) break
      this.#withdrawn.delete(old)
    }
    this.#withdrawn.set(id, now + LONGEST_REQUEST)
  }

  isWithdrawn(id: string): boolean {
    return (this.#withdrawn.get(id) ?? 0) > performance.now()
  }

  #expire(holding: Holding): void {
    if (performance.now() >= holding.expires) this.#giveBack(holding)
  }

  /** Runs one timer for all keys. It does not keep the process alive. */
  #look(at: number): void {
    if (at >= this.#timerAt) return
    clearTimeout(this.#timer)
    this.#timerAt = at
    const delay = Math.min(Math.max(at - performance.now(), 0), LONGEST_DELAY)
    const look = (): void => {
      this.#timerAt = Number.POSITIVE_INFINITY
      let next = Number.POSITIVE_INFINITY
      for (const holding of [...this.#holdings.values()]) {
        if (holding.state !== 'held') continue
        this.#expire(holding)
        if (holding.state === 'held') next = Math.min(next, holding.expires)
      }
      if (next < Number.POSITIVE_INFINITY) this.#look(next)
    }
    this.#timer = inRootContext(() => setTimeout(look, Math.ceil(delay))).unref()
  }
}

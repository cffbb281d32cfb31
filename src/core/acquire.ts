import { LeaseError } from '../contract/errors.ts'
import { events } from '../contract/events.ts'
import { visible } from '../contract/record.ts'
import { backoff, type Cancel, pause, request, storeError } from '../contract/request.ts'
import type { Busy, Claim, Grant, Wake } from '../contract/store.ts'
import { LAST_REQUEST, LONGEST_TRY, margin, requestLimit } from '../contract/time.ts'
import { warn } from '../contract/warnings.ts'
import type { Core } from './core.ts'
import type { HeldLease } from './held-lease.ts'
import { withdraw } from './withdraw.ts'

/** Milliseconds after which a waiter asks again whose watch could not be armed. */
const POLL = 1_000

/** Milliseconds before a store is asked again whose own number would mean a hot loop. */
const SHORTEST_PAUSE = 10

/**
 * Milliseconds that a waiter sleeps at most, times its position. Nothing wakes it if the holder shortens its lease and
 * dies, or a holder with a shorter ttl follows and dies.
 */
const LONGEST_SLEEP = 5_000

/** Nobody reads the reason of an ended watch; without one, abort() makes an exception with a stack: 25 us. */
const OVER = 'the wait is over'

/** Said of a wait for a name that the same locks hold. */
const NOT_REENTRANT = 'leases are not re-entrant'

/** How a lease came to be. */
export interface Acquired {
  readonly grant: Grant
  /** The clock's time before the request that was granted left. */
  readonly sent: number
  /** Did a request of this claim go unanswered? Then a copy of it may still arrive. */
  readonly unsettled: boolean
  /** Milliseconds from the call to the grant, and the requests that it took. */
  readonly waited: number
  readonly requests: number
}

/**
 * Puts a claim to the store until it holds, until `wait` ms are over, or until `cancel`: each settles it at once, and
 * what the claim may have left at the store is withdrawn in the background. A store that does not answer is asked again,
 * for one ttl at most; without `wait` not at all.
 */
export function acquire(core: Core, claim: Claim, wait: number, cancel: Cancel): Promise<Acquired> {
  return new Waiting(core, claim, wait, cancel).untilHeld()
}

class Waiting {
  /** May the store know the claim? */
  #mayBeKnown = false
  /** Did a request go unanswered, so that it may still arrive? */
  #unsettled = false
  readonly #core: Core
  readonly #claim: Claim
  readonly #cancel: Cancel
  readonly #started: number
  readonly #giveUpAt: number
  #watch: AbortController | undefined
  /** When the store last answered. */
  #heardAt: number
  #requests = 0
  #failures = 0
  /** When to ask again. */
  #askAt = 0
  #busy: Busy | undefined
  /** When to check next whether these locks hold the name themselves. Checked every ttl until it is reported. */
  #selfCheckAt: number
  #armed = false
  #endPause: (() => void) | undefined

  constructor(core: Core, claim: Claim, wait: number, cancel: Cancel) {
    this.#core = core
    this.#claim = claim
    this.#cancel = cancel
    this.#started = core.clock.now()
    this.#giveUpAt = this.#started + wait
    this.#heardAt = this.#started
    this.#selfCheckAt = this.#started + claim.ttl
  }

  async untilHeld(): Promise<Acquired> {
    try {
      for (let sent = this.#started; ; sent = this.#core.clock.now()) {
        this.#cancel.throwIfCancelled()
        this.#askAt = Number.POSITIVE_INFINITY
        let answer: Grant | Busy | undefined
        try {
          answer = await this.#ask(sent)
          if (answer.held) return this.#accept(answer, sent)
        } catch (error) {
          this.#bear(error)
        }
        if (answer?.held === false) this.#beBusy(answer)
        // Whoever let the name go before the watch was armed could not wake us: so ask once more right after.
        if (await this.#arm()) continue
        await this.#sleep()
      }
    } catch (error) {
      if (this.#mayBeKnown) this.#core.inBackground(withdraw(this.#core, this.#claim, this.#unsettled))
      throw error
    } finally {
      this.#watch?.abort(OVER)
    }
  }

  #ask(sent: number): Promise<Grant | Busy> {
    const { clock, store } = this.#core
    const left = this.#giveUpAt > this.#started ? Math.max(this.#giveUpAt - sent, LAST_REQUEST) : LONGEST_TRY
    const { ttl } = this.#claim
    const limit = Math.min(store.acquireLimit?.(ttl) ?? requestLimit(ttl), left)
    this.#requests += 1
    return request(clock, limit, signal => store.acquire(this.#claim, signal), { cancel: this.#cancel })
  }

  /** A grant whose answer comes when its time is over is none; asking again sets the time of the same claim anew. */
  #accept(grant: Grant, sent: number): Acquired {
    const now = this.#core.clock.now()
    const held = now < sent + grant.ttl - margin(grant.ttl) // never of a ttl that is no number
    if (!held) {
      const message = `the store granted ${grant.ttl} ms, and its answer took ${Math.round(now - sent)} ms`
      throw new LeaseError('OUTCOME_UNKNOWN', message)
    }
    return { grant, sent, unsettled: this.#unsettled, waited: now - this.#started, requests: this.#requests }
  }

  #beBusy(answer: Busy): void {
    const { name, owner, queue } = this.#claim
    const now = this.#core.clock.now()
    this.#heardAt = now
    this.#failures = 0
    this.#busy = { ...answer, holder: answer.holder && visible(answer.holder) }
    const retryAfter = answer.retryAfter >= 1 ? answer.retryAfter : SHORTEST_PAUSE
    const ahead = Math.max(answer.ahead || 0, 0) // NaN counts as none
    this.#askWithin(Math.min(retryAfter, LONGEST_SLEEP * (1 + ahead)))
    if (queue) this.#mayBeKnown = true
    if (events.lease_busy.hasSubscribers)
      events.lease_busy.publish({ name, owner, holder: this.#busy.holder, ahead: answer.ahead })
    if (now >= this.#giveUpAt) throw this.#timeout(this.#busy)
  }

  /** Returns if the failure of a request can be waited out. */
  #bear(reason: unknown): void {
    this.#mayBeKnown = true
    this.#unsettled = true
    this.#cancel.throwIfCancelled()
    const error = storeError(reason)
    const { name, owner, ttl } = this.#claim
    if (events.request_failed.hasSubscribers) events.request_failed.publish({ request: 'acquire', name, owner, error })
    const now = this.#core.clock.now()
    this.#failures += 1
    const retryAfter = Math.max(error.retryAfter || 0, 0) // NaN counts as none
    this.#askWithin(Math.max(retryAfter, backoff(this.#failures, this.#core.random)))
    if (retryAfter > 0) this.#heardAt = now
    if (!error.retryable) throw error
    const timedOut = now + retryAfter >= this.#giveUpAt
    if (timedOut && this.#busy) throw this.#timeout(this.#busy)
    if (!timedOut && now < this.#heardAt + ttl) return
    if (error.code !== 'OUTCOME_UNKNOWN') throw error
    const message = `${error.message}; if it granted ${JSON.stringify(name)} all the same, that ends within ${ttl} ms`
    throw new LeaseError('STORE_UNAVAILABLE', message, { lease: name, cause: error })
  }

  /** True when the watch was armed just now and may have missed a wake. */
  async #arm(): Promise<boolean> {
    const { clock, store } = this.#core
    if (this.#armed || this.#failures > 0 || !store.watch) return false
    const wake: Wake = (delay = 0) => this.#askWithin(delay)
    const missesNothing = this.#busy?.listens === true
    this.#watch ??= new AbortController()
    const { signal } = this.#watch
    const arm = async (): Promise<void> => store.watch?.(this.#claim, wake, signal)
    const limit = Math.min(requestLimit(this.#claim.ttl), this.#giveUpAt - clock.now())
    try {
      await request(clock, limit, arm, { cancel: this.#cancel })
      this.#armed = true
    } catch {
      this.#cancel.throwIfCancelled()
      this.#watch.abort(OVER)
      this.#watch = undefined
      this.#askWithin(POLL)
    }
    return this.#armed && !missesNothing
  }

  #askWithin(delay: number): void {
    const at = this.#core.clock.now() + delay
    if (!(at < this.#askAt)) return // nor when NaN
    this.#askAt = at
    this.#endPause?.()
  }

  async #sleep(): Promise<void> {
    const { clock } = this.#core
    const arm = (wake: () => void): void => {
      this.#endPause = wake
    }
    for (;;) {
      const until = Math.min(this.#askAt, this.#giveUpAt)
      if (until <= clock.now()) return
      this.#reportSelfWait()
      await pause(clock, Math.min(until, this.#selfCheckAt) - clock.now(), { cancel: this.#cancel, arm })
      this.#endPause = undefined
    }
  }

  /** A call inside the work of the lease that it waits for waits for ever, and nothing else reports that. */
  #reportSelfWait(): void {
    const now = this.#core.clock.now()
    if (now < this.#selfCheckAt) return
    const { name, owner, ttl } = this.#claim
    this.#selfCheckAt = now + ttl
    const lease = this.#ownLease()
    if (!lease || now < lease.heldSince + ttl) return
    this.#selfCheckAt = Number.POSITIVE_INFINITY
    const waited = now - this.#started
    if (events.self_wait.hasSubscribers) events.self_wait.publish({ name, owner, lease: lease.handle, waited })
    const what = `acquire has waited ${Math.round(waited)} ms for ${JSON.stringify(name)}, which is ${this.#heldHere(lease)}; ${NOT_REENTRANT}`
    const cure = 'pass the lease to the code that needs it; --trace-warnings shows the call that waits'
    warn('HOLDFAST_SELF_WAIT', `${what}: ${cure}`, name)
  }

  #timeout({ holder, ahead }: Busy): LeaseError {
    const { name } = this.#claim
    const waited = Math.round(this.#core.clock.now() - this.#started)
    const failed = this.#giveUpAt > this.#started ? `was not acquired within ${waited} ms: it ` : ''
    const message = `${JSON.stringify(name)} ${failed}is ${this.#state(holder, ahead)}`
    return new LeaseError('ACQUIRE_TIMEOUT', message, { lease: name, holder })
  }

  #state(holder: Busy['holder'], ahead: Busy['ahead']): string {
    if (!holder) return ahead ? `free, but ${ahead} wait before this claim` : 'not to be had'
    const remaining = `for another ${holder.remaining} ms unless renewed`
    // Another owner means other locks, which saves the search. The token decides, because owners may be shared.
    const own = holder.owner === this.#claim.owner ? this.#ownLease() : undefined
    return own && own.token === holder.token
      ? `${this.#heldHere(own)}, ${remaining}; ${NOT_REENTRANT}`
      : `held by ${holder.owner}, ${remaining}`
  }

  /** The lease on this name that these locks hold. */
  #ownLease(): HeldLease | undefined {
    for (const lease of this.#core.leases.values())
      if (lease.name === this.#claim.name && lease.remaining > 0) return lease
    return undefined
  }

  #heldHere({ owner, heldSince }: HeldLease): string {
    const { clock } = this.#core
    const since = new Date(clock.wall() - (clock.now() - heldSince)).toISOString()
    return `held by these locks (${owner}) since ${since}`
  }
}

import { LeaseError, type LeaseErrorOf } from '../contract/errors.ts'
import { events } from '../contract/events.ts'
import { visible } from '../contract/record.ts'
import { backoff, type Cancel, pause, request, storeError } from '../contract/request.ts'
import type { Busy, Claim, Grant, LeaseRecord, Store, Wake } from '../contract/store.ts'
import { FIRST_TRY, LAST_REQUEST, LONGEST_SLEEP, LONGEST_TRY, margin, requestLimit } from '../contract/time.ts'
import { busyState } from './busy-state.ts'
import type { Core } from './core.ts'
import type { AcquireTerms } from './options.ts'
import { findSelfWait, type OwnLeases, reportSelfWait, type SelfWait } from './self-wait.ts'
import { withdraw } from './withdraw.ts'

/** Milliseconds until the next request if no watch could be armed. */
const POLL = 1_000

/** The longest time in milliseconds until a watch is armed, or the claim asks again. */
const LONGEST_ARMING = 3_000

/** The least pause in milliseconds, whatever `retryAfter` says. It prevents a hot loop. */
const SHORTEST_PAUSE = 10

/**
 * Milliseconds that the first request gets if `wait` is at least as long. A dead connection is not replaced sooner, and a
 * store far away answers by then.
 */
const LEAST_FIRST = 1_000

/**
 * The longest sleep in milliseconds of a waiter that is kept, in case its store has forgotten it (R15). 10,000 waiters of a
 * process send 33 requests a second for that.
 */
const LONGEST_KEPT = 300_000

/** The reason of an ended watch. Without a reason, abort() makes an exception with a stack, which takes 25 us. */
const ENDED = 'the wait is over'

/** What an acquisition needs. */
type AcquisitionCore = Omit<Core, 'store'> & {
  readonly store: Pick<Store, 'guarantees' | 'acquire' | 'release' | 'watch'>
}

/** A claim that holds its name. */
export interface Acquired {
  readonly grant: Grant
  /** The clock's time before the granted request was sent. */
  readonly sent: number
  /** Was a request of this claim not answered? It may still arrive. */
  readonly unsettled: boolean
  /** Milliseconds from the call to the grant. */
  readonly waited: number
  /** Requests from the call to the grant. */
  readonly requests: number
}

/**
 * Where a call stands.
 * - `asking`: a request is sent. `sent`: the clock's time before it.
 * - `arming`: the name is busy, or the store did not answer. The store is asked to wake the claim, unless it does so already.
 * - `waiting`: the call sleeps until it is time to ask. `wake` ends the pause.
 * - `over`: the claim holds, or the time for the call has run out.
 */
type State =
  | { readonly is: 'asking'; readonly sent: number }
  | { readonly is: 'arming' }
  | { readonly is: 'waiting'; wake?: () => void }
  | { readonly is: 'over'; readonly acquired?: Acquired }

interface Outage {
  failures: number
  /** The time at which the store stopped answering. Time in which this process was paused is not counted. */
  since: number
  /** The last failure. A request that `wait` has cut short does not count. */
  error: LeaseError | undefined
}

/**
 * Acquires the name of a claim. It ends when the claim holds, when `wait` ms are over, and at `cancel`. Then what the
 * claim may have left at the store is withdrawn in the background. A store that does not answer is retried for one ttl.
 * With `wait` 0 it gets two requests, which together take as long as one.
 */
export class Acquisition {
  readonly #core: AcquisitionCore
  readonly #claim: Claim
  readonly #terms: AcquireTerms
  readonly #wait: number
  readonly #cancel: Cancel
  #state: State | undefined
  #started = Number.POSITIVE_INFINITY
  #requests = 0
  /** The time at which to send the next request. A wake may come in every state. */
  #askAt = 0
  /** The last answer. Since then a claim that queues may have a position at the store. */
  #busy: Busy | undefined
  /** May an unanswered request still arrive? */
  #unsettled = false
  /** Requests in a row without an answer. `undefined`: the last one was answered. */
  #outage: Outage | undefined
  #watch: AbortController | undefined
  /** Is this call counted among those that wait? */
  #isCounted = false
  #selfWait: SelfWait | 'reported' | undefined
  #timeout: LeaseErrorOf<'BUSY'> | undefined

  constructor(core: AcquisitionCore, claim: Claim, terms: AcquireTerms, cancel: Cancel) {
    this.#core = core
    this.#claim = claim
    this.#terms = terms
    this.#wait = terms.wait
    this.#cancel = cancel
  }

  /** Resolves to the acquired claim, or to `undefined` if the name was not acquired within `wait`. */
  async run(): Promise<Acquired | undefined> {
    this.#started = this.#core.clock.now()
    let state: State = { is: 'asking', sent: this.#started }
    try {
      if (this.#wait > 0) this.#core.waiters.check(this.#claim.name, this.#terms.maxWaiters)
      while (state.is !== 'over') {
        this.#cancel.throwIfCancelled()
        this.#state = state
        if (state.is === 'asking') state = await this.#ask(state.sent)
        else if (state.is === 'arming') state = await this.#arm()
        else state = await this.#sleep(state)
      }
      return state.acquired
    } finally {
      this.#end(state.is === 'over' && state.acquired !== undefined)
    }
  }

  #end(isHeld: boolean): void {
    const { inBackground, waiters } = this.#core
    const mayBeKnown = this.#unsettled || (this.#claim.queue && this.#busy !== undefined)
    if (!isHeld && mayBeKnown) inBackground(withdraw(this.#core, this.#claim, this.#unsettled))
    this.#watch?.abort(ENDED)
    if (this.#isCounted) waiters.remove(this.#claim.name)
  }

  /** Asks once. Does not use `await`, because a function that awaits keeps its variables in memory. */
  #ask(sent: number): Promise<State> {
    const { clock, store } = this.#core
    const limit = this.#limitAt(sent)
    this.#requests += 1
    this.#askAt = Number.POSITIVE_INFINITY
    return request(clock, limit, signal => store.acquire(this.#claim, signal), { cancel: this.#cancel })
      .then(answer => (answer.held ? this.#accept(answer, sent) : this.#onBusy(answer)))
      .catch(error => this.#onFailure(error, sent, limit))
  }

  /** Milliseconds for a request. The first request leaves time for a second one over another connection. */
  #limitAt(sent: number): number {
    const most = this.#mostPerRequest
    const isFirst = this.#requests === 0
    if (this.#wait === 0) return isFirst ? most * FIRST_TRY : Math.max(this.#started + most - sent, 0)
    const left = Math.max(this.#giveUpAt - sent, LAST_REQUEST)
    return Math.min(most, isFirst ? Math.max(this.#wait * FIRST_TRY, Math.min(left, LEAST_FIRST)) : left)
  }

  /** The most milliseconds for one request. With `wait` 0 they are for both requests together. */
  get #mostPerRequest(): number {
    const most = requestLimit(this.#claim.ttl, this.#core.store.guarantees?.acquireShare)
    return this.#wait > 0 ? most : Math.min(most, LONGEST_TRY)
  }

  get #giveUpAt(): number {
    return this.#started + this.#wait
  }

  /** Throws for a grant that ended before its answer came. Asking again renews the same claim. */
  #accept(grant: Grant, sent: number): State {
    const now = this.#core.clock.now()
    checkTerm(grant, now - sent)
    const waited = now - this.#started
    return { is: 'over', acquired: { grant, sent, unsettled: this.#unsettled, waited, requests: this.#requests } }
  }

  #onBusy(answer: Busy): State {
    const { name, owner } = this.#claim
    const now = this.#core.clock.now()
    this.#outage = undefined
    this.#busy = answer
    const retryAfter = answer.retryAfter >= 1 ? answer.retryAfter : SHORTEST_PAUSE
    const ahead = Math.max(answer.ahead || 0, 0) // NaN counts as none
    const isKept = answer.kept === true && answer.listens === true && this.#core.store.watch !== undefined
    this.#askWithin(isKept ? LONGEST_KEPT : Math.min(retryAfter, LONGEST_SLEEP * (1 + ahead)))
    this.#terms.onBusy?.()
    if (events.lease_busy.hasSubscribers)
      events.lease_busy.publish({ name, owner, holder: this.#holder, ahead: answer.ahead })
    return { is: now < this.#giveUpAt ? 'arming' : 'over' }
  }

  /** Throws if a retry is useless or would come too late. */
  #onFailure(reason: unknown, sent: number, limit: number): State {
    this.#unsettled = true
    this.#cancel.throwIfCancelled()
    const error = storeError(reason)
    const { name, owner, ttl } = this.#claim
    events.request_failed.publish({ request: 'acquire', name, owner, error })
    const now = this.#core.clock.now()
    const isUnknown = error.code === 'OUTCOME_UNKNOWN'
    // This process may not have sent the request yet.
    const isCutShort = this.#wait > 0 && limit < this.#mostPerRequest && now >= sent + limit
    const retryAfter = Math.max(error.retryAfter || 0, 0) // NaN counts as none
    this.#outage ??= { failures: 0, since: sent, error: undefined }
    const outage = this.#outage
    outage.failures += 1
    outage.since = retryAfter > 0 ? now : outage.since + Math.max(now - sent - limit, 0)
    if (!isCutShort || !isUnknown) outage.error = error
    this.#askWithin(Math.max(retryAfter, backoff(outage.failures, this.#core.random)))
    if (!error.retryable) throw error
    // The connection may have been dead, and the store may have replaced it by now.
    const isTriedAgain = this.#wait === 0 && outage.failures === 1 && isUnknown
    if (isTriedAgain && now < this.#started + this.#mostPerRequest) return { is: 'arming' }
    const isOver = now + retryAfter >= this.#giveUpAt
    if (isOver ? this.#busy || !outage.error : now < outage.since + ttl) return { is: isOver ? 'over' : 'arming' }
    const cause = outage.error ?? error
    if (!isUnknown) throw cause
    // Say how long the name may be held.
    const message =
      `${cause.message} (asked ${outage.failures}x in ${Math.round(now - outage.since)} ms); ` +
      `if it granted ${JSON.stringify(name)} nevertheless, that lease ends within ${ttl} ms`
    throw new LeaseError('STORE_UNAVAILABLE', message, { leaseName: name, cause })
  }

  async #arm(): Promise<State> {
    const { clock, store, waiters } = this.#core
    // After the first answer, because any number of calls may ask for a free name.
    if (this.#wait > 0 && !this.#isCounted) waiters.add(this.#claim.name, this.#terms.maxWaiters)
    this.#isCounted = this.#wait > 0
    if (this.#watch || this.#outage || !store.watch) return { is: 'waiting' }
    const watch = new AbortController()
    this.#watch = watch
    const wake: Wake = (delay = 0) => this.#askWithin(delay)
    const arm = async (): Promise<void> => store.watch?.(this.#claim, wake, watch.signal)
    // A position lapses after 5 s. Nothing wakes the claim until the watch is armed.
    const limit = Math.min(requestLimit(this.#claim.ttl), LONGEST_ARMING, this.#giveUpAt - clock.now())
    try {
      await request(clock, limit, arm, { cancel: this.#cancel })
      // A release before the watch was armed could not wake this claim, so ask once more.
      if (!this.#busy?.listens) return { is: 'asking', sent: clock.now() }
    } catch {
      this.#cancel.throwIfCancelled()
      watch.abort(ENDED)
      this.#watch = undefined
      this.#askWithin(POLL)
    }
    return { is: 'waiting' }
  }

  #askWithin(delay: number): void {
    const at = this.#core.clock.now() + delay
    if (!(at < this.#askAt)) return // also returns if `at` is NaN
    this.#askAt = at
    this.#wake()
  }

  #wake(): void {
    if (this.#state?.is === 'waiting') this.#state.wake?.()
  }

  /** Sleeps until there is something to do. */
  #sleep(state: Extract<State, { is: 'waiting' }>): Promise<State> | State {
    const { clock } = this.#core
    const found = this.#selfWait
    if (found && found !== 'reported') {
      this.#selfWait = found.lease.remaining > 0 ? 'reported' : undefined // it may have ended meanwhile
      // First: a listener may release the lease, which wakes this call.
      if (this.#selfWait) reportSelfWait(found, this.#claim, clock, this.#waited)
    }
    const now = clock.now()
    const until = Math.min(this.#askAt, this.#giveUpAt)
    if (until <= now) return { is: 'asking', sent: now }
    this.#core.onWait()
    const arm = (wake: () => void): void => {
      state.wake = wake
    }
    return pause(clock, until - now, { cancel: this.#cancel, arm }).then(() => {
      // Time for which this process was paused is not part of an outage.
      if (this.#outage) this.#outage.since += Math.max(clock.now() - until, 0)
      return state
    })
  }

  /** Finds a self-wait among the leases of this process. The call reports it, so that the warning has its stack. */
  check(now: number, leases: OwnLeases): void {
    if (this.#selfWait) return
    this.#selfWait = findSelfWait(this.#claim, this.#busy?.holder, this.#started, now, leases)
    if (this.#selfWait) this.#wake()
  }

  /** Whole milliseconds since the call. */
  get #waited(): number {
    return Math.round(this.#core.clock.now() - this.#started)
  }

  /** The `BUSY` error of a run that ended without a lease. Each call returns the same error. */
  timeout(): LeaseErrorOf<'BUSY'> {
    if (this.#timeout) return this.#timeout
    const { name } = this.#claim
    const waited = this.#waited
    const failed = this.#wait > 0 ? `was not acquired within ${waited} ms: it ` : ''
    const message = `${JSON.stringify(name)} ${failed}is ${this.nameState}`
    this.#timeout = new LeaseError('BUSY', message, { leaseName: name, holder: this.#holder, waited })
    return this.#timeout
  }

  /** The holder that the store named last. It is made on demand, because thousands of waiters would keep a copy each. */
  get #holder(): LeaseRecord | undefined {
    const holder = this.#busy?.holder
    return holder && visible(holder)
  }

  /** The state of the name for the message of an error: `… is held by …`. */
  get nameState(): string {
    return busyState(this.#claim, this.#busy ?? {}, this.#core)
  }
}

/** Throws `OUTCOME_UNKNOWN` for a grant that ended before its answer came after `elapsed` ms. */
function checkTerm({ ttl }: Grant, elapsed: number): void {
  if (elapsed < ttl - margin(ttl)) return // false if the ttl is NaN
  const message = `the store granted ${ttl} ms, and its answer took ${Math.round(elapsed)} ms`
  throw new LeaseError('OUTCOME_UNKNOWN', message)
}

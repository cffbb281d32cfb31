import { LeaseError, type LeaseErrorOf } from '../contract/errors.ts'
import { events } from '../contract/events.ts'
import { visible } from '../contract/record.ts'
import { backoff, type Cancel, pause, request, storeError } from '../contract/request.ts'
import type { Busy, Claim, Grant, LeaseRecord, Store, Wake } from '../contract/store.ts'
import { FIRST_TRY, LAST_REQUEST, LONGEST_SLEEP, LONGEST_TRY, margin, requestLimit } from '../contract/time.ts'
import { warn } from '../contract/warnings.ts'
import { busyState, IF_INSIDE } from './busy-state.ts'
import type { Core, ListedLease } from './core.ts'
import type { AcquireTerms } from './options.ts'
import { withdraw } from './withdraw.ts'

/** Milliseconds until the next request if no watch could be armed. */
const POLL = 1_000

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
const OVER = 'the wait is over'

const ONE_LOCKS = 'make one Locks per process, also if modules are loaded again'

/** What an acquisition needs. */
export type AcquisitionCore = Omit<Core, 'store'> & {
  readonly store: Pick<Store, 'acquire' | 'release' | 'watch'> & {
    readonly guarantees: Pick<Store['guarantees'], 'acquireShare'>
  }
  readonly onBusy?: (() => void) | undefined
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
 * Acquires the name of a claim. It ends when the claim holds, when `wait` ms are over, and at `cancel`. Then what the
 * claim may have left at the store is withdrawn in the background. A store that does not answer is retried for one ttl.
 * With `wait` 0 it gets two requests, which together take as long as one.
 */
export class Acquisition {
  /** Is it possible that the store knows the claim? */
  #mayBeKnown = false
  /** May an unanswered request still arrive? */
  #unsettled = false
  readonly #core: AcquisitionCore
  readonly #claim: Claim
  readonly #cancel: Cancel
  readonly #wait: number
  readonly #maxWaiters: number
  #started = Number.POSITIVE_INFINITY
  #giveUpAt = 0
  #watch: AbortController | undefined
  /** The time at which the store stopped answering. Time in which this process was paused is not counted. */
  #silentSince = 0
  #requests = 0
  #failures = 0
  /** The last failure since the store stopped answering. A request that `wait` has cut short does not count. */
  #reason: LeaseError | undefined
  /** The time at which to send the next request. */
  #askAt = 0
  #busy: Busy | undefined
  /** A lease of this process for which the call waits. */
  #waitsFor: ListedLease | undefined
  /** Do other locks of this process hold the name? */
  #isElsewhere = false
  #isReported = false
  #isArmed = false
  /** Has the time for the call run out? */
  #isOver = false
  /** Is this call counted among those that wait? */
  #waits = false
  #endPause: (() => void) | undefined
  readonly #armPause = (wake: () => void): void => {
    this.#endPause = wake
  }
  #timeout: LeaseErrorOf<'BUSY'> | undefined

  constructor(core: AcquisitionCore, claim: Claim, { wait, maxWaiters }: AcquireTerms, cancel: Cancel) {
    this.#core = core
    this.#claim = claim
    this.#wait = wait
    this.#maxWaiters = maxWaiters
    this.#cancel = cancel
  }

  /** Resolves to the acquired claim, or to `undefined` if the name was not acquired within `wait`. */
  async run(): Promise<Acquired | undefined> {
    this.#started = this.#core.clock.now()
    this.#giveUpAt = this.#started + this.#wait
    let acquired: Acquired | undefined
    try {
      if (this.#wait > 0) this.#core.waiters.check(this.#claim.name, this.#maxWaiters)
      for (let sent = this.#started; ; sent = this.#core.clock.now()) {
        this.#cancel.throwIfCancelled()
        this.#askAt = Number.POSITIVE_INFINITY
        acquired = await this.#attempt(sent)
        if (acquired || this.#isOver) return acquired
        if (!this.#waits) this.#beginWait()
        // A release before the watch was armed could not wake this claim, so ask once more.
        if (await this.#arm()) continue
        for (let pause = this.#pause(); pause; pause = this.#pause()) await pause
      }
    } finally {
      if (!acquired && this.#mayBeKnown) this.#core.inBackground(withdraw(this.#core, this.#claim, this.#unsettled))
      this.#watch?.abort(OVER)
      if (this.#waits) this.#core.waiters.remove(this.#claim.name)
    }
  }

  /** Throws if too many calls wait. Called after the first answer, because any number of calls may ask for a free name. */
  #beginWait(): void {
    if (this.#wait === 0) return
    const { waiters } = this.#core
    waiters.check(this.#claim.name, this.#maxWaiters)
    waiters.add(this.#claim.name)
    this.#waits = true
  }

  /** Asks once. Does not use `await`, because a function that awaits keeps its variables in memory. */
  #attempt(sent: number): Promise<Acquired | undefined> {
    const { clock, store } = this.#core
    const limit = this.#limitAt(sent)
    this.#requests += 1
    return request(clock, limit, signal => store.acquire(this.#claim, signal), { cancel: this.#cancel })
      .then(answer => (answer.held ? this.#accept(answer, sent) : this.#onBusy(answer)))
      .catch(error => this.#onFailure(error, sent, limit))
  }

  /** Milliseconds for a request. The first request leaves time for a second one over another connection. */
  #limitAt(sent: number): number {
    const most = this.#mostPerRequest
    const total = this.#wait > 0 ? this.#wait : most
    const left = this.#started + total - sent
    const least = this.#wait > 0 ? LAST_REQUEST : 0
    if (this.#requests > 0) return Math.min(most, Math.max(left, least))
    return Math.min(most, Math.max(total * FIRST_TRY, least && Math.min(Math.max(left, least), LEAST_FIRST)))
  }

  /** The most milliseconds for one request. With `wait` 0 they are for both requests together. */
  get #mostPerRequest(): number {
    const most = requestLimit(this.#claim.ttl, this.#core.store.guarantees?.acquireShare)
    return this.#wait > 0 ? most : Math.min(most, LONGEST_TRY)
  }

  /** The `BUSY` error of a run that ended without a lease. Each call returns the same error. */
  timeout(): LeaseErrorOf<'BUSY'> {
    if (this.#timeout) return this.#timeout
    const { name } = this.#claim
    const waited = Math.round(this.#core.clock.now() - this.#started)
    const failed = this.#wait > 0 ? `was not acquired within ${waited} ms: it ` : ''
    const message = `${JSON.stringify(name)} ${failed}is ${this.state}`
    this.#timeout = new LeaseError('BUSY', message, { leaseName: name, holder: this.#holder, waited })
    return this.#timeout
  }

  /** The holder that the store named last. It is made on demand, because thousands of waiters would keep a copy each. */
  get #holder(): LeaseRecord | undefined {
    const holder = this.#busy?.holder
    return holder && visible(holder)
  }

  /** Throws for a grant that ended before its answer came. Asking again renews the same claim. */
  #accept(grant: Grant, sent: number): Acquired {
    const now = this.#core.clock.now()
    checkTerm(grant, now - sent)
    return { grant, sent, unsettled: this.#unsettled, waited: now - this.#started, requests: this.#requests }
  }

  #onBusy(answer: Busy): undefined {
    const { name, owner, queue } = this.#claim
    const now = this.#core.clock.now()
    this.#failures = 0
    this.#busy = answer
    const retryAfter = answer.retryAfter >= 1 ? answer.retryAfter : SHORTEST_PAUSE
    const ahead = Math.max(answer.ahead || 0, 0) // NaN counts as none
    const isKept = answer.kept === true && answer.listens === true && this.#core.store.watch !== undefined
    this.#askWithin(isKept ? LONGEST_KEPT : Math.min(retryAfter, LONGEST_SLEEP * (1 + ahead)))
    if (queue) this.#mayBeKnown = true
    this.#core.onBusy?.()
    if (events.lease_busy.hasSubscribers)
      events.lease_busy.publish({ name, owner, holder: this.#holder, ahead: answer.ahead })
    this.#isOver = now >= this.#giveUpAt
  }

  /** Throws if a retry is useless or would come too late. */
  #onFailure(reason: unknown, sent: number, limit: number): undefined {
    this.#mayBeKnown = true
    this.#unsettled = true
    this.#cancel.throwIfCancelled()
    const error = storeError(reason)
    const { name, owner, ttl } = this.#claim
    events.request_failed.publish({ request: 'acquire', name, owner, error })
    const now = this.#core.clock.now()
    if (this.#failures === 0) {
      this.#silentSince = sent
      this.#reason = undefined
    }
    // This process may not have sent the request yet.
    const isCutShort = this.#wait > 0 && limit < this.#mostPerRequest && now >= sent + limit
    if (!isCutShort || error.code !== 'OUTCOME_UNKNOWN') this.#reason = error
    this.#silentSince += Math.max(now - sent - limit, 0)
    this.#failures += 1
    const retryAfter = Math.max(error.retryAfter || 0, 0) // NaN counts as none
    this.#askWithin(Math.max(retryAfter, backoff(this.#failures, this.#core.random)))
    if (retryAfter > 0) this.#silentSince = now
    if (!error.retryable) throw error
    // The connection may have been dead, and the store may have replaced it by now.
    const isTriedAgain = this.#wait === 0 && this.#failures === 1 && error.code === 'OUTCOME_UNKNOWN'
    if (isTriedAgain && now < this.#started + this.#mostPerRequest) return
    const isOver = now + retryAfter >= this.#giveUpAt
    if (isOver ? this.#busy || !this.#reason : now < this.#silentSince + ttl) {
      this.#isOver = isOver
      return
    }
    const cause = this.#reason ?? error
    if (error.code !== 'OUTCOME_UNKNOWN') throw cause
    // Say how long the name may be held.
    const message =
      `${cause.message} (asked ${this.#failures}x in ${Math.round(now - this.#silentSince)} ms); ` +
      `if it granted ${JSON.stringify(name)} nevertheless, that lease ends within ${ttl} ms`
    throw new LeaseError('STORE_UNAVAILABLE', message, { leaseName: name, cause })
  }

  /** True if the watch has just been armed and may have missed a wake. */
  async #arm(): Promise<boolean> {
    const { clock, store } = this.#core
    if (this.#isArmed || this.#failures > 0 || !store.watch) return false
    const wake: Wake = (delay = 0) => this.#askWithin(delay)
    const missesNothing = this.#busy?.listens === true
    this.#watch ??= new AbortController()
    const { signal } = this.#watch
    const arm = async (): Promise<void> => store.watch?.(this.#claim, wake, signal)
    const limit = Math.min(requestLimit(this.#claim.ttl), this.#giveUpAt - clock.now())
    try {
      await request(clock, limit, arm, { cancel: this.#cancel })
      this.#isArmed = true
    } catch {
      this.#cancel.throwIfCancelled()
      this.#watch.abort(OVER)
      this.#watch = undefined
      this.#askWithin(POLL)
    }
    return this.#isArmed && !missesNothing
  }

  #askWithin(delay: number): void {
    const at = this.#core.clock.now() + delay
    if (!(at < this.#askAt)) return // also returns if `at` is NaN
    this.#askAt = at
    this.#endPause?.()
  }

  /** Sleeps until there is something to do. `undefined`: it is time to ask. */
  #pause(): Promise<void> | undefined {
    const { clock } = this.#core
    this.#reportSelfWait() // first: a listener may release the lease, which wakes this call
    this.#endPause = undefined
    const until = Math.min(this.#askAt, this.#giveUpAt)
    if (until <= clock.now()) return undefined
    this.#core.onWait()
    return pause(clock, until - clock.now(), { cancel: this.#cancel, arm: this.#armPause })
  }

  /** Finds a self-wait: for at least one ttl this call has waited, and this process has held the name. */
  check(now: number, own: ReadonlyMap<string, ListedLease>, all: ReadonlyMap<string, readonly ListedLease[]>): void {
    const { name, ttl, limit } = this.#claim
    const holder = this.#busy?.holder
    // Other locks may hold the name in another store. Token and owner together show that it is this one.
    const isHolder = ({ token, owner }: ListedLease): boolean => token === holder?.token && owner === holder?.owner
    const lease = own.get(name) ?? all.get(name)?.find(isHolder)
    if (lease?.limit !== undefined && limit !== undefined) return // two permits in one process are not a deadlock
    this.#isElsewhere = !own.has(name)
    if (this.#isReported || !lease || now < Math.max(this.#started, lease.heldSince) + ttl) return
    this.#waitsFor = lease
    this.#endPause?.() // resumes the call, so that the warning has its stack
  }

  /** Reports a self-wait once. A call inside the work of that lease waits for ever. */
  #reportSelfWait(): void {
    const lease = this.#waitsFor
    this.#waitsFor = undefined
    if (!lease?.remaining) return // 0: it has ended meanwhile
    this.#isReported = true
    const { name, owner } = this.#claim
    const waited = Math.round(this.#core.clock.now() - this.#started)
    events.self_wait.publish({ name, owner, lease: lease.handle, waited })
    const what = `acquire has waited ${waited} ms for ${JSON.stringify(name)}, ${this.#heldHere(lease, this.#isElsewhere)}`
    const cure = this.#isElsewhere ? ONE_LOCKS : `${IF_INSIDE}: pass the lease to it`
    warn('HOLDFAST_SELF_WAIT', `${what}; ${cure}; --trace-warnings shows the call`, name)
  }

  /** The state of the name for the message of an error: `… is held by …`. */
  get state(): string {
    const holder = this.#holder
    // Another owner means other locks, so no search is needed. The token decides, because locks may share an owner.
    const mayBeOwn = holder?.owner === this.#claim.owner && this.#claim.limit === undefined
    const own = mayBeOwn ? this.#core.heldLease(this.#claim.name) : undefined
    const isOwn = own !== undefined && own.token === holder?.token
    return busyState(this.#claim, { holder, ahead: this.#busy?.ahead }, isOwn ? this.#heldHere(own) : undefined)
  }

  #heldHere({ owner, heldSince }: ListedLease, isElsewhere = false): string {
    const { clock } = this.#core
    const since = new Date(clock.wall() - (clock.now() - heldSince)).toISOString()
    return `held by ${isElsewhere ? 'other locks of this process' : 'another call of these locks'} (${owner}) since ${since}`
  }
}

/** Throws `OUTCOME_UNKNOWN` for a grant that ended before its answer came after `elapsed` ms. */
function checkTerm({ ttl }: Grant, elapsed: number): void {
  if (elapsed < ttl - margin(ttl)) return // false if the ttl is NaN
  const message = `the store granted ${ttl} ms, and its answer took ${Math.round(elapsed)} ms`
  throw new LeaseError('OUTCOME_UNKNOWN', message)
}

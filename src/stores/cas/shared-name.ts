import { LeaseError } from '../../contract/errors.ts'
import { events } from '../../contract/events.ts'
import { randomId } from '../../contract/random-id.ts'
import { backoff, Cancel, pause, request } from '../../contract/request.ts'
import { inRootContext } from '../../contract/root-context.ts'
import { type Clock, LONGEST_REQUEST } from '../../contract/time.ts'
import { Name, type Wakes } from '../rules/name.ts'
import { closed } from '../wire/failure.ts'
import { type Attempt, Attempts, type Decision } from './attempts.ts'
import { contended, full, LAST_TOKEN, unknown, usedUp } from './failure.ts'
import { keyOf } from './key.ts'
import type { Stored, View } from './record.ts'
import { isChanged, keepOf, NOTHING, observe, parse, store } from './record.ts'
import type { Entry, Register } from './register.ts'
import { insist, isAbsence, isRefusal, limitOf, type Pending, type Request, renewedBy } from './request.ts'
import { withoutRoom } from './room.ts'

/** What this process knows of the record. `version`: there is none. */
interface Known<Version> {
  readonly view: View
  readonly version: Version | undefined
}

/**
 * The most requests that share a write. Deciding each takes time that grows with the queue: 10,000 in one turn would block the
 * process for 12 s.
 */
const MOST_REQUESTS = 250

/** Milliseconds for which a name that others wait for is assumed to be as this process saw it. */
const RECENT = 100

/** Milliseconds after which a read that lags shows what a process saw. A leader of NATS that was replaced answers for 20 s. */
const LONGEST_LAG = 30_000

/** The longest mean pause before another attempt, in round trips. So most of a crowd do not disturb the few that write next. */
const MOST_PAUSES = 16

/** What the names of a store share. */
export interface Shared<Version> {
  readonly register: Register<Version>
  readonly clock: Clock
  /** Wakes waiters of this process for a name. */
  wake(name: string, wakes: Wakes): void
}

/**
 * One name, as this process sees it. The requests that arrive while a read or a write is under way share the next one. They
 * are decided by the rules on the record that was read, and what changes is written if the record is still that one. So a
 * decision counts only once its write has happened, and an answer that needs no write only after a read that began later
 * than the request.
 */
export class SharedName<Version> {
  readonly name: string
  readonly #shared: Shared<Version>
  readonly #waiting = new Set<Pending>()
  #view: View = NOTHING
  /** `undefined`: there is no record, as far as this process knows. */
  #version: Version | undefined
  /** When the record was last read or written. */
  #seenAt = Number.NEGATIVE_INFINITY
  /** The requests that are carried out, and what gives them up. */
  #batch: readonly Pending[] = []
  #cancel = new Cancel()
  #isRunning = false
  #isClosed = false
  /** Milliseconds that the last read took. */
  roundTrip = 0

  constructor(name: string, shared: Shared<Version>) {
    this.name = name
    this.#shared = shared
  }

  get isIdle(): boolean {
    return !this.#isRunning
  }

  ask<Answer>(asked: Request<Answer>): Promise<Answer> {
    return new Promise((resolve, reject) => {
      if (this.#isClosed) throw closed()
      const until = this.#now + asked.limit
      this.#waiting.add({ ...asked, until, resolve: resolve as Pending['resolve'], reject })
      // A request that hangs may do so on a dead connection. The next one must not wait for it if only looks do.
      const left = this.#batch.find(({ signal }) => signal.aborted)
      const isLeft = left && this.#batch.every(({ signal, looks }) => looks || signal.aborted)
      if (isLeft) this.#cancel.cancel(left.signal.reason)
      if (!this.#isRunning) inRootContext(() => void this.#run())
    })
  }

  /** The name now, for people. It writes nothing. `listed`: its record, which may be old. */
  async look(signal: AbortSignal, listed?: Entry<Version>): Promise<Name> {
    const [seenAt, isAlone, sent] = [this.#seenAt, this.isIdle, this.#now]
    const seen = listed ? this.#seen(listed) : await this.#readUnless(signal)
    // What was read may be older than what this process has written meanwhile, and what was listed than what it has read.
    const last = this.#view.writes.at(-1)
    const isNew = listed ? last === undefined || seen.view.writes.includes(last) : !this.#isOlder(seen)
    if (isNew && isAlone && this.isIdle && this.#seenAt === seenAt) this.#learn(seen)
    // A lease that ended while its record was read may have been renewed meanwhile, so it is shown as it was before.
    const { state } = seen.view
    const now = this.#now
    return new Name(state.holders.some(({ expires }) => expires > sent && expires <= now) ? sent : now, state)
  }

  close(): void {
    this.#isClosed = true
    for (const asked of this.#waiting) this.#settle(asked, () => asked.reject(closed()))
    this.#cancel.cancel(closed())
  }

  get #first(): Pending[] {
    return [...this.#waiting].slice(0, MOST_REQUESTS)
  }

  get #now(): number {
    return this.#shared.clock.now()
  }

  async #run(): Promise<void> {
    this.#isRunning = true
    while (this.#waiting.size > 0) {
      await new Promise(resolve => setImmediate(resolve)) // what is asked in this turn is carried out together
      this.#cancel = new Cancel()
      const attempts = new Attempts()
      try {
        await this.#carryOut(attempts)
      } catch (error) {
        for (const asked of this.#batch) {
          if (asked.looks && this.#cancel.cancelled) continue // it looks together with the next request
          const reason = attempts.has(asked) ? unknown(this.name, error) : error
          this.#settle(asked, () => asked.reject(asked.signal.aborted ? asked.signal.reason : reason))
        }
      }
    }
    this.#isRunning = false
  }

  /** Settles the first requests that wait, also those that are asked before another attempt, or throws. */
  async #carryOut(attempts: Attempts): Promise<void> {
    const { register, clock } = this.#shared
    let isGuess = this.#mayGuess(this.#first)
    let isRefuted = false // does the record have another version than this process knew?
    for (let conflicts = 0; ; ) {
      this.#batch = this.#wanted(this.#first, attempts)
      if (this.#batch.length === 0) return
      if (!isGuess) {
        const seen = await this.#read(limitOf(this.#batch, this.#now))
        if (isRefuted || !this.#isOlder(seen)) this.#learn(seen)
        this.#judge(attempts)
      }
      const wanted = this.#wanted(this.#batch, attempts)
      if (wanted.length === 0) return
      const wasGuess = isGuess
      isGuess = false
      const decision = this.#decide(wanted, attempts)
      const { state, now, answers } = decision
      if (wasGuess && [...answers.values()].some(isRefusal)) continue
      if (!state) return this.#answer(decision)
      const write = randomId().slice(0, 16)
      const stored = store(this.#view, state, now, renewedBy(answers), write)
      const value = JSON.stringify(stored)
      if (this.#refuse(stored, value, decision)) continue
      const attempt: Attempt = { write, after: this.#view.writes.at(-1), decision }
      attempts.add(attempt)
      let version: Version | undefined
      let copies = 0
      try {
        const [expected, keep] = [this.#version, keepOf(state, now)]
        version = await this.#send(limitOf(wanted, this.#now), this.#cancel, signal => {
          copies += 1
          return register.write(keyOf(this.name), value, expected, signal, keep)
        })
        if (version === undefined && copies > 1)
          attempt.error = new LeaseError('OUTCOME_UNKNOWN', 'the new version may be that of another copy of the write')
      } catch (error) {
        if (!LeaseError.is(error) || !error.retryable) {
          attempts.remove(attempt)
          throw error
        }
        attempt.error = error // the write may have happened, which the next read shows
      }
      if (version !== undefined) {
        this.#learn({ view: observe(stored, this.#now, this.#view), version })
        return this.#confirm(decision)
      }
      isRefuted ||= !attempt.error
      if (wasGuess && !attempt.error) continue
      conflicts += 1
      const delay = attempt.error
        ? backoff(conflicts)
        : Math.random() * Math.min(conflicts, MOST_PAUSES) * Math.max(this.roundTrip, 1)
      const soonest = Math.min(...wanted.map(({ until }) => until)) - this.#now
      await pause(clock, Math.min(delay, soonest / 2), { background: true, cancel: this.#cancel })
    }
  }

  /** Can the requests be decided on what this process knows? A wrong guess costs a write that fails by its version. */
  #mayGuess(batch: readonly Pending[]): boolean {
    if (this.#version === undefined || batch.some(({ looks }) => looks)) return false
    return this.#view.state.waiters.length === 0 || this.#now - this.#seenAt < RECENT
  }

  #send<Answer>(limit: number, cancel: Cancel, send: (signal: AbortSignal) => Promise<Answer>): Promise<Answer> {
    const { clock } = this.#shared
    return request(clock, limit, signal => insist(clock, signal, send), { background: true, cancel })
  }

  async #read(limit: number, cancel: Cancel = this.#cancel): Promise<Known<Version>> {
    const { register } = this.#shared
    const sent = this.#now
    const entry = await this.#send(limit, cancel, signal => register.read(keyOf(this.name), signal))
    this.roundTrip = this.#now - sent
    return this.#seen(entry)
  }

  /** Reads alone, unless `signal` aborts. */
  async #readUnless(signal: AbortSignal): Promise<Known<Version>> {
    const cancel = new Cancel()
    const stop = (): void => cancel.cancel(signal.reason)
    signal.addEventListener('abort', stop)
    try {
      return await this.#read(LONGEST_REQUEST, cancel)
    } finally {
      // A signal of `AbortSignal.any` is never collected while somebody listens to it.
      signal.removeEventListener('abort', stop)
    }
  }

  #seen(entry: Entry<Version> | undefined): Known<Version> {
    if (!entry) return { view: NOTHING, version: undefined }
    const { value, version, age = 0 } = entry
    const written = this.#now - (age > 0 ? age : 0)
    return { view: observe(parse(this.name, value), written, this.#view), version }
  }

  /**
   * Is it what was before the record that this process knows? That one is the better guess, until a write on it fails by its
   * version, or no read can lag so long: the system may have been restored, or begun anew.
   */
  #isOlder({ version }: Known<Version>): boolean {
    const { isNewer } = this.#shared.register
    if (!isNewer || this.#version === undefined || this.#now - this.#seenAt >= LONGEST_LAG) return false
    return version === undefined || isNewer(this.#version, version)
  }

  #learn({ view, version }: Known<Version>): void {
    this.#view = view
    this.#version = version
    this.#seenAt = this.#now
  }

  /** After a read: which of the writes without a confirmation happened? */
  #judge(attempts: Attempts): void {
    const { done, unclear } = attempts.judge(this.#view.writes, asked => this.#waiting.has(asked))
    for (const { decision } of done) this.#confirm(decision)
    for (const { decision, error } of unclear)
      for (const asked of decision.answers.keys())
        if (!asked.isRepeatable) this.#settle(asked, () => asked.reject(unknown(this.name, error)))
  }

  #decide(wanted: readonly Pending[], attempts: Attempts): Decision {
    const now = this.#now
    const floor = Math.floor(this.#shared.clock.wall() * 1_000)
    const before = this.#view.state
    const answers = new Map<Pending, unknown>()
    const wakes = new Map<string, number>()
    let state = before
    for (const asked of wanted) {
      const rules = new Name(now, state, floor)
      answers.set(asked, asked.decide(rules))
      state = rules.state
      for (const [id, delay] of rules.wakes(asked.id)) wakes.set(id, delay)
    }
    if (state.token > LAST_TOKEN) throw usedUp(this.name)
    // What a read that lags says of a lease that is gone is true if a write that expects that record happens. A refusal is
    // final only after such a write, too, if an earlier one that grants the request may still happen.
    const { mayLag = false } = this.#shared.register
    const mustWrite = Array.from(answers).some(
      ([asked, answer]) => (mayLag && isAbsence(answer)) || (isRefusal(answer) && attempts.mayGrant(asked, mayLag)),
    )
    return { answers, state: mustWrite || isChanged(before, state, now) ? state : undefined, now, wakes }
  }

  /** Refuses the requests for which the record has no room. Returns true if there are any. */
  #refuse(stored: Stored, value: string, { answers }: Decision): boolean {
    const { maxBytes } = this.#shared.register
    const { state } = this.#view
    const refused = withoutRoom([...answers.keys()], state, stored, value, maxBytes)
    const claims = state.holders.length + state.waiters.length
    for (const asked of refused) this.#settle(asked, () => asked.reject(full(this.name, claims, maxBytes)))
    return refused.length > 0
  }

  /** The requests that are not settled. Rejects those that were given up or are stale. */
  #wanted(batch: readonly Pending[], attempts: Attempts): Pending[] {
    const now = this.#now
    return batch.filter(asked => {
      if (!this.#waiting.has(asked)) return false
      const { signal, until, limit, reject } = asked
      if (signal.aborted) this.#settle(asked, () => reject(signal.reason))
      else if (now >= until) {
        const reason = attempts.has(asked) ? unknown(this.name, attempts.error) : contended(this.name, limit)
        this.#settle(asked, () => reject(reason))
      }
      return this.#waiting.has(asked)
    })
  }

  /** What was decided is written. */
  #confirm(decision: Decision): void {
    this.#answer(decision)
    this.#shared.wake(this.name, decision.wakes)
  }

  #answer({ answers }: Decision): void {
    const { size } = answers
    if (events.batch_sent.hasSubscribers) events.batch_sent.publish({ size })
    for (const [asked, answer] of answers) this.#settle(asked, () => asked.resolve(answer))
  }

  #settle(asked: Pending, how: () => void): void {
    if (this.#waiting.delete(asked)) how()
  }
}

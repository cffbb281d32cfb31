import type { LeaseError } from '../contract/errors.ts'
import { type Entry, List } from '../contract/list.ts'
import type { Clock } from '../contract/time.ts'
import { Lateness } from './lateness.ts'

/** What the heartbeat needs of a lease. */
export interface Renewable {
  readonly ttl: number
  /** The time at which the request of the last successful renewal, or of the grant, was sent. */
  readonly renewedAt: number
  /** Renews now, even if an earlier renewal is unanswered. Resolves to the error if a retry is needed. Never rejects. */
  renew(): Promise<LeaseError | undefined> | undefined
}

/** Renews leases until they leave. */
export interface Beats {
  /** Adds a lease. The other methods need the entry that this returns. */
  join(lease: Renewable): Entry<Renewable>
  /** Moves a lease that had `ttl` when it joined, and has another one now. */
  rejoin(entry: Entry<Renewable>, ttl: number): Entry<Renewable>
  /** Removes a lease. Resolves, within a limit, when no renewal is in flight elsewhere. `undefined`: none is. */
  leave(entry: Entry<Renewable>): Promise<void> | undefined
  /** At least how many milliseconds this thread was just blocked, if that delayed renewals of this `ttl`; else 0. */
  blocked(ttl: number): number
  /** Ends the renewals after `maxHold` ms from now. Only a heartbeat in another thread has this method. */
  limit?(maxHold: number): void
}

/**
 * Steps until a retry. A step is a fortieth of the ttl. A blocked event loop counts as one step, however long it was
 * blocked, because the answers to thousands of renewals may be unread. An unresponsive store gets at least four requests
 * between a beat and the deadline.
 */
const STEPS_WHEN_UNANSWERED = 6
const STEPS_WHEN_FAILED = 2

/** The longest step in milliseconds. */
const LONGEST_STEP = 250

/** Each step is multiplied by a random factor in this range, so that processes do not send at the same times. */
const SHORTEST_FACTOR = 0.75
const LONGEST_FACTOR = 1.25

/**
 * Renews every lease of one `Locks` at a third of its ttl. Leases of one ttl are renewed together, so that thousands of
 * renewals share a few requests. The first beat is random, so that processes that started together drift apart. A
 * renewal that fails or is not answered is retried until the lease ends. One that is answered late is repeated.
 */
export class Heartbeat implements Beats {
  readonly #clock: Clock
  readonly #random: () => number
  /** The delay of the first beat, in intervals. All groups share it, because timers of a known duration are cheaper. */
  readonly #firstBeat: number
  readonly #groups = new Map<number, Group>()

  constructor(clock: Clock, random: () => number) {
    this.#clock = clock
    this.#random = random
    this.#firstBeat = 0.75 + random() / 4
  }

  join(lease: Renewable): Entry<Renewable> {
    let group = this.#groups.get(lease.ttl)
    if (!group) {
      group = new Group(lease.ttl, this.#firstBeat, this.#clock, this.#random)
      this.#groups.set(lease.ttl, group)
    }
    return group.join(lease)
  }

  rejoin(entry: Entry<Renewable>, ttl: number): Entry<Renewable> {
    this.leave(entry, ttl)
    return this.join(entry.value)
  }

  blocked(ttl: number): number {
    const late = this.#groups.get(ttl)?.lateness.at(this.#clock.now()) ?? 0
    return late < ttl / 3 ? 0 : late
  }

  leave(entry: Entry<Renewable>, ttl: number = entry.value.ttl): undefined {
    if (this.#groups.get(ttl)?.leave(entry) && this.#groups.size > MOST_GROUPS) this.#groups.delete(ttl)
  }
}

/**
 * The longest time in milliseconds between the requests of two successful renewals if one message is lost. A lease that
 * is just too young for a beat waits for the next beat, and then for the retry.
 */
export function longestGap(ttl: number): number {
  return ttl / 2 + STEPS_WHEN_UNANSWERED * LONGEST_FACTOR * stepLength(ttl)
}

function stepLength(ttl: number): number {
  return Math.min(ttl / 40, LONGEST_STEP)
}

/**
 *  The number of renewals that are sent at once. Sending 100,000 at once would cost the garbage collector more than
 * everything else.
 * The number doubles with each step, so that an unresponsive server does not delay the renewals of other servers.
 */
const AT_ONCE = 256

/** Up to this many empty groups are kept: the next lease probably has the same ttl. */
const MOST_GROUPS = 16

/** A request for a lease. It is retried at the end of this step. */
interface Attempt {
  retryAt: number
}

/** The leases of one ttl. One timer beats for all of them, and another runs while answers are missing. */
class Group {
  /** The lateness of its beats. */
  readonly lateness: Lateness = new Lateness()
  readonly #leases = new List<Renewable>()
  /** The leases to renew in this beat, and the index of the next one. */
  #due: readonly Entry<Renewable>[] = []
  #next = 0
  /** Requests of this step that are not answered yet. */
  #inFlight = 0
  #atOnce = AT_ONCE
  /** The leases that are not renewed yet although a request was sent, each with its last one. */
  readonly #unrenewed = new Map<Renewable, Attempt>()
  #step = 0
  readonly #interval: number
  readonly #firstBeat: number
  readonly #stepLength: number
  readonly #clock: Clock
  readonly #random: () => number
  #stopBeat: (() => void) | undefined
  #stopStep: (() => void) | undefined

  constructor(ttl: number, firstBeat: number, clock: Clock, random: () => number) {
    this.#interval = ttl / 3
    this.#firstBeat = this.#interval * firstBeat
    this.#stepLength = stepLength(ttl)
    this.#clock = clock
    this.#random = random
  }

  join(lease: Renewable): Entry<Renewable> {
    if (!this.#stopBeat) this.#beatAfter(this.#firstBeat)
    if (this.#isLate(lease)) this.#renewSoon(lease)
    return this.#leases.add(lease)
  }

  /** Removes a lease. True if the group is now empty. */
  leave(entry: Entry<Renewable>): boolean {
    this.#leases.remove(entry)
    const isEmpty = this.#leases.size === 0
    if (isEmpty) {
      this.#stopBeat?.()
      this.#stopBeat = undefined
      this.lateness.end()
      this.#setDue([]) // an empty group is kept, and must not keep its leases alive
    }
    this.#settle(entry.value)
    return isEmpty
  }

  /** Was the request answered so late that the lease may end before the next beat? This process may have been paused. */
  #isLate({ renewedAt }: Renewable): boolean {
    return this.#clock.now() - renewedAt > this.#interval
  }

  #beatAfter(delay: number): void {
    this.#stopBeat = this.#clock.after(delay, () => this.#beat(), true)
    this.lateness.expect(this.#clock.now() + delay)
  }

  #beat(): void {
    // A lease that is younger than half an interval waits for the next beat. It is then at most half its ttl old, and a
    // short-lived lease costs no renewal at all.
    const now = this.#clock.now()
    this.lateness.fire(now)
    const youngest = now - this.#interval / 2
    this.#beatAfter(this.#interval)
    const due: Entry<Renewable>[] = []
    for (let entry = this.#leases.first; entry; entry = entry.after)
      if (entry.value.renewedAt <= youngest) due.push(entry)
    this.#setDue(due)
    this.#atOnce = AT_ONCE
    this.#send()
  }

  #setDue(due: readonly Entry<Renewable>[]): void {
    this.#due = due
    this.#next = 0
  }

  /** Sends the next renewals that are due. The others follow as these are answered, at the latest with the next step. */
  #send(): void {
    while (this.#inFlight < this.#atOnce && this.#next < this.#due.length) {
      const { list, value } = this.#due[this.#next++] as Entry<Renewable>
      if (list && !this.#unrenewed.has(value)) void this.#renew(value)
    }
    if (this.#next === this.#due.length) this.#setDue([])
  }

  async #renew(lease: Renewable): Promise<void> {
    const step = this.#step
    const attempt = this.#attempt(lease)
    this.#inFlight += 1
    const failure = await lease.renew()
    // An earlier attempt says nothing about a later one.
    if (this.#unrenewed.get(lease) === attempt) {
      if (failure) attempt.retryAt = this.#step + STEPS_WHEN_FAILED
      else if (this.#isLate(lease)) this.#renewSoon(lease)
      else this.#settle(lease)
    }
    if (step !== this.#step) return
    this.#inFlight -= 1
    this.#send()
  }

  /** Renews a lease after this turn of the event loop, unless it leaves. The caller may be about to send a request for it. */
  #renewSoon(lease: Renewable): void {
    const attempt = this.#attempt(lease)
    this.#clock.after(0, () => this.#unrenewed.get(lease) === attempt && void this.#renew(lease), true)
  }

  #attempt(lease: Renewable): Attempt {
    const attempt = { retryAt: this.#step + STEPS_WHEN_UNANSWERED }
    this.#unrenewed.set(lease, attempt)
    if (!this.#stopStep) this.#nextStep()
    return attempt
  }

  /** The steps end when nothing is unrenewed or left to send. */
  #settle(lease: Renewable): void {
    if (!this.#unrenewed.delete(lease) || this.#unrenewed.size + this.#due.length > 0) return
    this.#stopStep?.()
    this.#stopStep = undefined
  }

  #nextStep(): void {
    const factor = SHORTEST_FACTOR + (LONGEST_FACTOR - SHORTEST_FACTOR) * this.#random()
    this.#stopStep = this.#clock.after(this.#stepLength * factor, () => this.#endStep(), true)
  }

  #endStep(): void {
    this.#step += 1
    this.#inFlight = 0
    this.#atOnce *= 2
    this.#stopStep = undefined
    // A renewal may find its lease lost, and a listener of that, or a set, may end others.
    for (const [lease, attempt] of [...this.#unrenewed])
      if (attempt.retryAt <= this.#step && this.#unrenewed.get(lease) === attempt) void this.#renew(lease)
    this.#send()
    if (!this.#stopStep && this.#unrenewed.size > 0) this.#nextStep()
  }
}

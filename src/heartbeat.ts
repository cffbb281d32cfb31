import { type Entry, List } from './list.ts'
import type { Clock } from './time.ts'

/** What the heartbeat needs of a lease. */
export interface Renewable {
  readonly ttl: number
  /** When the last renewal that succeeded, or the grant, was asked for. */
  readonly renewedAt: number
  /** Renews now, beside one that is not yet answered; false if it failed and should be tried again. Never rejects. */
  renew(): Promise<boolean>
}

/**
 * The time until another try is counted in steps of a fortieth of the ttl, since the answers to thousands of renewals
 * may wait behind a blocked event loop: however long that was, it is one step. So a store that is silent is asked four
 * times or more between a beat and the deadline.
 */
const STEPS_WHEN_SILENT = 6
const STEPS_WHEN_FAILED = 2

/** Milliseconds. */
const LONGEST_STEP = 250

/** Up to so many are kept when nobody is left in them: the next lease has most likely the same ttl. */
const MOST_GROUPS = 16

/**
 * Renews every lease of one `Locks` at a third of its ttl. Leases of one ttl beat together, so that thousands of
 * renewals share a few requests; processes that started together drift apart by a random first beat. What fails is
 * tried again until the lease ends, what is not answered as well, beside the renewal that may yet be.
 */
export class Heartbeat {
  readonly #clock: Clock
  readonly #random: () => number
  /** In intervals. One for all groups, since most timers are cheaper the second time. */
  readonly #firstBeat: number
  readonly #groups = new Map<number, Group>()

  constructor(clock: Clock, random: () => number) {
    this.#clock = clock
    this.#random = random
    this.#firstBeat = 0.75 + random() / 4
  }

  /** The entry is what `leave` needs. */
  join(lease: Renewable): Entry<Renewable> {
    let group = this.#groups.get(lease.ttl)
    if (!group) {
      group = new Group(lease.ttl, this.#firstBeat, this.#clock, this.#random)
      this.#groups.set(lease.ttl, group)
    }
    return group.join(lease)
  }

  /** The ttl must still be that of the join. */
  leave(entry: Entry<Renewable>): void {
    const { ttl } = entry.value
    if (this.#groups.get(ttl)?.leave(entry) && this.#groups.size > MOST_GROUPS) this.#groups.delete(ttl)
  }
}

/** All leases of one ttl, the one timer that beats for them, and one while answers are missing. */
class Group {
  readonly #leases = new List<Renewable>()
  /** Those that were asked for and are not renewed yet. */
  readonly #missing = new Set<Renewable>()
  readonly #interval: number
  readonly #firstBeat: number
  readonly #step: number
  readonly #clock: Clock
  readonly #random: () => number
  #stopBeat: (() => void) | undefined
  #stopStep: (() => void) | undefined
  /** Steps until another try. */
  #steps = Number.POSITIVE_INFINITY

  constructor(ttl: number, firstBeat: number, clock: Clock, random: () => number) {
    this.#interval = ttl / 3
    this.#firstBeat = this.#interval * firstBeat
    this.#step = Math.min(ttl / 40, LONGEST_STEP)
    this.#clock = clock
    this.#random = random
  }

  join(lease: Renewable): Entry<Renewable> {
    if (!this.#stopBeat) this.#beatAfter(this.#firstBeat)
    return this.#leases.add(lease)
  }

  /** True when nobody is left. */
  leave(entry: Entry<Renewable>): boolean {
    this.#leases.remove(entry)
    this.#found(entry.value)
    if (this.#leases.size > 0) return false
    this.#stopBeat?.()
    this.#stopBeat = undefined
    return true
  }

  #beatAfter(delay: number): void {
    this.#stopBeat = this.#clock.after(delay, () => this.#beat(), true)
  }

  #beat(): void {
    // A lease that joined between two beats waits for the next one if it is younger than half an interval: it is then
    // at most half its ttl old, and a lease that lives shorter costs no renewal at all.
    const youngest = this.#clock.now() - this.#interval / 2
    this.#beatAfter(this.#interval)
    for (const lease of this.#leases.values())
      if (lease.renewedAt <= youngest && !this.#missing.has(lease)) void this.#renew(lease)
  }

  async #renew(lease: Renewable): Promise<void> {
    this.#missing.add(lease)
    this.#tryWithin(STEPS_WHEN_SILENT)
    if (await lease.renew()) this.#found(lease)
    else if (this.#missing.has(lease)) this.#tryWithin(STEPS_WHEN_FAILED)
  }

  #found(lease: Renewable): void {
    if (this.#missing.delete(lease) && this.#missing.size === 0) this.#endSteps()
  }

  /** All that are missing are tried together, and the others keep their beat. */
  #tryWithin(steps: number): void {
    this.#steps = Math.min(this.#steps, steps)
    if (!this.#stopStep) this.#nextStep()
  }

  #nextStep(): void {
    this.#stopStep = this.#clock.after(this.#step * (0.75 + this.#random() / 2), () => this.#endStep(), true)
  }

  #endStep(): void {
    this.#steps -= 1
    if (this.#steps > 0) {
      this.#nextStep()
      return
    }
    this.#endSteps()
    for (const lease of this.#missing) void this.#renew(lease)
  }

  #endSteps(): void {
    this.#stopStep?.()
    this.#stopStep = undefined
    this.#steps = Number.POSITIVE_INFINITY
  }
}

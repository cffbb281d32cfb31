import { type Entry, List } from '../contract/list.ts'
import type { Clock } from '../contract/time.ts'

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

/** In steps: each is shorter or longer than that by chance, so that processes do not ask in step. */
const SHORTEST_CHANCE = 0.75
const LONGEST_CHANCE = 1.25

/**
 * Milliseconds from the request of a renewal that succeeded to that of the next one that can, at most, although a message
 * of the first try is lost: a lease just too young for a beat waits for the next, and then for the end of its silence.
 */
export function longestGap(ttl: number): number {
  return ttl / 2 + STEPS_WHEN_SILENT * LONGEST_CHANCE * stepLength(ttl)
}

function stepLength(ttl: number): number {
  return Math.min(ttl / 40, LONGEST_STEP)
}

/**
 * More at once gain nothing: what 100,000 requests need would cost the garbage collector more than all the rest. While
 * some are silent it is twice as many with each step, so that those of a server that is silent hold up no others.
 */
const AT_ONCE = 256

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
  /** Those to be asked for in this beat, and how far that has come. */
  #due: readonly Entry<Renewable>[] = []
  #next = 0
  /** Those that were asked for in this step and are not answered yet. */
  #underWay = 0
  #atOnce = AT_ONCE
  /** Those that were asked for and are not renewed yet, and the step at whose end they are tried again. */
  readonly #missing = new Map<Renewable, number>()
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
    return this.#leases.add(lease)
  }

  /** True when nobody is left. */
  leave(entry: Entry<Renewable>): boolean {
    this.#leases.remove(entry)
    this.#found(entry.value)
    if (this.#leases.size > 0) return false
    this.#stopBeat?.()
    this.#stopBeat = undefined
    this.#askFor([]) // what is kept of an empty group must not keep its leases
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
    const due: Entry<Renewable>[] = []
    for (let entry = this.#leases.first; entry; entry = entry.after)
      if (entry.value.renewedAt <= youngest) due.push(entry)
    this.#askFor(due)
    this.#atOnce = AT_ONCE
    this.#ask()
  }

  #askFor(due: readonly Entry<Renewable>[]): void {
    this.#due = due
    this.#next = 0
  }

  /** Asks for those that are due, so many at once; the others as these are answered, or a step later if they are not. */
  #ask(): void {
    while (this.#underWay < this.#atOnce && this.#next < this.#due.length) {
      const { list, value } = this.#due[this.#next++] as Entry<Renewable>
      if (list && !this.#missing.has(value)) void this.#renew(value)
    }
    if (this.#next === this.#due.length) this.#askFor([])
  }

  async #renew(lease: Renewable): Promise<void> {
    const step = this.#step
    this.#tryAfter(lease, STEPS_WHEN_SILENT)
    this.#underWay += 1
    const isRenewed = await lease.renew()
    if (isRenewed) this.#found(lease)
    else if (this.#missing.has(lease)) this.#tryAfter(lease, STEPS_WHEN_FAILED)
    if (step !== this.#step) return
    this.#underWay -= 1
    this.#ask()
  }

  #found(lease: Renewable): void {
    if (!this.#missing.delete(lease) || this.#missing.size > 0) return
    this.#stopStep?.()
    this.#stopStep = undefined
  }

  #tryAfter(lease: Renewable, steps: number): void {
    this.#missing.set(lease, this.#step + steps)
    if (!this.#stopStep) this.#nextStep()
  }

  #nextStep(): void {
    const chance = SHORTEST_CHANCE + (LONGEST_CHANCE - SHORTEST_CHANCE) * this.#random()
    this.#stopStep = this.#clock.after(this.#stepLength * chance, () => this.#endStep(), true)
  }

  #endStep(): void {
    this.#step += 1
    this.#underWay = 0
    this.#atOnce *= 2
    this.#nextStep()
    for (const [lease, end] of [...this.#missing]) if (end <= this.#step) void this.#renew(lease)
    this.#ask()
  }
}

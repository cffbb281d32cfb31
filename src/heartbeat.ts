import type { Clock } from './time.ts'

/** What the heartbeat needs of a lease. */
export interface Renewable {
  readonly ttl: number
  /** When the last renewal that succeeded, or the grant, was asked for. */
  readonly renewedAt: number
  /** Renews now; false if it failed and should be tried again soon. Never rejects. */
  renew(): Promise<boolean>
}

/** Milliseconds: a failed renewal is tried again after a twentieth of its ttl, within these. */
const SHORTEST_RETRY = 10
const LONGEST_RETRY = 500

/**
 * Renews every lease of one `Locks` at a third of its ttl. Leases of one ttl beat together, so that thousands of
 * renewals share a few requests; processes that started together drift apart by a random first beat.
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

  join(lease: Renewable): void {
    let group = this.#groups.get(lease.ttl)
    if (!group) {
      group = new Group(lease.ttl, this.#firstBeat, this.#clock, this.#random)
      this.#groups.set(lease.ttl, group)
    }
    group.join(lease)
  }

  leave(lease: Renewable): void {
    const group = this.#groups.get(lease.ttl)
    if (group?.leave(lease)) this.#groups.delete(lease.ttl)
  }
}

/** All leases of one ttl, and the one timer that beats for them. */
class Group {
  readonly #leases = new Set<Renewable>()
  readonly #interval: number
  readonly #firstBeat: number
  readonly #retry: number
  readonly #clock: Clock
  readonly #random: () => number
  #nextBeat = 0
  #stopTimer: (() => void) | undefined

  constructor(ttl: number, firstBeat: number, clock: Clock, random: () => number) {
    this.#interval = ttl / 3
    this.#firstBeat = this.#interval * firstBeat
    this.#retry = Math.min(Math.max(ttl / 20, SHORTEST_RETRY), LONGEST_RETRY)
    this.#clock = clock
    this.#random = random
  }

  join(lease: Renewable): void {
    this.#leases.add(lease)
    if (!this.#stopTimer) this.#beatAfter(this.#firstBeat)
  }

  /** True when nobody is left. */
  leave(lease: Renewable): boolean {
    this.#leases.delete(lease)
    if (this.#leases.size > 0) return false
    this.#stopTimer?.()
    this.#stopTimer = undefined
    return true
  }

  #beatAfter(delay: number): void {
    this.#stopTimer?.()
    this.#nextBeat = this.#clock.now() + delay
    this.#stopTimer = this.#clock.after(delay, () => this.#beat(), true)
  }

  #beat(): void {
    // A lease that joined between two beats waits for the next one if it is younger than half an interval: it is then
    // at most half its ttl old, and a lease that lives shorter costs no renewal at all.
    const youngest = this.#clock.now() - this.#interval / 2
    this.#beatAfter(this.#interval)
    for (const lease of this.#leases) if (lease.renewedAt <= youngest) void this.#renew(lease)
  }

  async #renew(lease: Renewable): Promise<void> {
    if (await lease.renew()) return
    const delay = this.#retry * (0.75 + this.#random() / 2)
    if (this.#stopTimer && this.#nextBeat > this.#clock.now() + delay) this.#beatAfter(delay)
  }
}

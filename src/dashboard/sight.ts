import { isShared, useOf, wantOf } from '../contract/record.ts'
import type { LeaseRecord } from '../contract/store.ts'
import { Hold } from './hold.ts'

/** The number of ended leases of a name that are remembered. */
const KEPT_HOLDS = 20

/** A waiter. */
export interface SeenWaiter {
  readonly owner: string
  readonly note: string
  /** What it wants from a shared name: see `wantOf`. */
  readonly want: string
  /** The time since which it certainly has waited, in milliseconds since 1970. It may have waited longer. */
  readonly since: number
}

/** What is shown of one lease, or of all leases of a shared name together. */
export type Held = Readonly<Pick<Hold, 'owner' | 'token' | 'note' | 'age' | 'isSinceGrant' | 'remaining' | 'most'>>

/** What one look changed. */
export interface Changed {
  /** The leases that ended since the last look, and those that are new. */
  readonly ended: readonly Hold[]
  readonly begun: readonly Hold[]
}

/** What was seen of one name. */
export class Sight {
  readonly name: string
  /** The holders, the lowest slot first. */
  holders: readonly LeaseRecord[] = []
  /** Their leases, in the same order. */
  holds: readonly Hold[] = []
  /** Leases that have ended, the newest first. */
  past: readonly Hold[] = []
  waiters: readonly SeenWaiter[] = []
  #isKnown = false

  constructor(name: string) {
    this.name = name
  }

  /** Can several hold it? */
  get isShared(): boolean {
    return isShared(this.holders)
  }

  /**
   * Its lease. Of a shared name: how much of it is held, without a token and a note, the age of the oldest lease, and what
   * remains of the first to end. `undefined`: it is free.
   */
  get held(): Held | undefined {
    const [oldest] = this.holds.toSorted((a, b) => a.since - b.since)
    const [first] = this.holds.toSorted((a, b) => a.remaining - b.remaining)
    if (!oldest || !first) return undefined
    const { owner, token, note } = this.isShared ? { owner: useOf(this.holders), token: '', note: '' } : oldest
    const { age, isSinceGrant } = oldest
    return { owner, token, note, age, isSinceGrant, remaining: first.remaining, most: first.most }
  }

  /** The least time since which somebody waits, in milliseconds since 1970. Infinity: nobody waits. */
  get waitedSince(): number {
    return Math.min(...this.waiters.map(({ since }) => since))
  }

  /** The time at which the name was last seen to be held, in milliseconds since 1970. */
  get seen(): number {
    return (this.holds[0] ?? this.past[0])?.seen ?? 0
  }

  /** Takes in the records of one look at time `at`, to which at least `passed` ms passed since the last look. */
  see(records: readonly LeaseRecord[], at: number, passed: number): Changed {
    const last = new Map(this.holds.map(hold => [hold.token, hold]))
    const begun: Hold[] = []
    this.holders = records.filter(({ state }) => state === 'held')
    this.holds = this.holders.map(holder => {
      const known = last.get(`${holder.token ?? ''}`)
      last.delete(`${holder.token ?? ''}`)
      known?.see(holder, at, passed)
      const hold = known ?? new Hold(holder, at, this.#isKnown)
      if (!known) begun.push(hold)
      return hold
    })
    const ended = [...last.values()]
    const waiting = records.filter(({ state }) => state === 'waiting')
    // After another lease since the last look, any waiter may have held the name in between and wait again.
    const isSame = this.holds.length > 0 && begun.length === 0
    const known = isSame ? onlyOnes(this.waiters) : undefined
    const now = onlyOnes(waiting)
    this.waiters = waiting.map(waiter => {
      const { owner, note } = waiter
      const since = now.has(owner) ? known?.get(owner)?.since : undefined
      return { owner, note, want: wantOf(waiter, records), since: since ?? at }
    })
    this.#isKnown = true
    this.past = [...ended.toReversed(), ...this.past].slice(0, KEPT_HOLDS)
    return { ended, begun }
  }
}

/** The waiters whose owner has no other waiter, by owner. Claims of one owner cannot be told apart. */
function onlyOnes<Waiter extends { readonly owner: string }>(waiters: readonly Waiter[]): Map<string, Waiter> {
  const only = new Map<string, Waiter>()
  for (const [owner, [first, ...others]] of Map.groupBy(waiters, each => each.owner))
    if (first && others.length === 0) only.set(owner, first)
  return only
}

import { isShared, wantOf } from '../contract/record.ts'
import type { LeaseRecord } from '../contract/store.ts'
import { Hold } from './hold.ts'

/** Ended leases of a name that are remembered. */
const KEPT_HOLDS = 20

/** A waiter, in the order of the store. */
export interface SeenWaiter {
  readonly owner: string
  readonly note: string
  /** How it wants a name that others may share: see `wantOf`. */
  readonly want: string
  /** Milliseconds since 1970 from when on it certainly waited. It may wait for longer. */
  readonly since: number
}

/** What one look changed. */
export interface Changed {
  /** The leases that ended since the last look, and those that are new. */
  readonly ended: readonly Hold[]
  readonly begun: readonly Hold[]
}

/** What was seen of one name. */
export class Sight {
  readonly name: string
  /** Those who hold it, the lowest slot first. */
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

  /** When somebody was last seen to hold it, in milliseconds since 1970. */
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
    // Another lease since the last look: any waiter may have held the name in between, and wait again.
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

/** By owner, those whose owner has no other. Claims of one owner look alike: which of them is new is not known. */
function onlyOnes<Waiter extends { readonly owner: string }>(waiters: readonly Waiter[]): Map<string, Waiter> {
  const only = new Map<string, Waiter>()
  for (const [owner, [first, ...others]] of Map.groupBy(waiters, each => each.owner))
    if (first && others.length === 0) only.set(owner, first)
  return only
}

import type { LeaseRecord } from '../contract/store.ts'
import { Hold } from './hold.ts'

/** Holders of a name that are remembered. */
const KEPT_HOLDS = 20

/** A waiter, in the order of the store. */
export interface SeenWaiter {
  readonly owner: string
  readonly note: string
  /** Milliseconds since 1970 from when on it certainly waited. It may wait for longer. */
  readonly since: number
}

/** What was seen of one name. */
export class Sight {
  readonly name: string
  /** When it is held. */
  holder: LeaseRecord | undefined
  waiters: readonly SeenWaiter[] = []
  /** The leases that were seen, the newest first. The first is that of the holder, if it is held. */
  readonly holds: Hold[] = []
  #isKnown = false

  constructor(name: string) {
    this.name = name
  }

  /** The present lease. */
  get hold(): Hold | undefined {
    return this.holder && this.holds[0]
  }

  /**
   * Takes in the records of one look at time `at`, to which at least `passed` ms passed since the last look. Returns the
   * lease that ended since then.
   */
  see(records: readonly LeaseRecord[], at: number, passed: number): Hold | undefined {
    const last = this.hold
    this.holder = records.find(({ state }) => state === 'held')
    const isSame = last !== undefined && last.token === (this.holder && `${this.holder.token ?? ''}`)
    const waiting = records.filter(({ state }) => state === 'waiting')
    // Another lease since the last look: any waiter may have held the name in between, and wait again.
    const known = isSame ? onlyOnes(this.waiters) : undefined
    const now = onlyOnes(waiting)
    this.waiters = waiting.map(({ owner, note }) => {
      const since = now.has(owner) ? known?.get(owner)?.since : undefined
      return { owner, note, since: since ?? at }
    })
    const wasKnown = this.#isKnown
    this.#isKnown = true
    if (this.holder && isSame) {
      last.see(this.holder, at, passed)
      return undefined
    }
    if (this.holder) {
      this.holds.unshift(new Hold(this.holder, at, wasKnown))
      this.holds.length = Math.min(this.holds.length, KEPT_HOLDS)
    }
    return last
  }
}

/** By owner, those whose owner has no other. Claims of one owner look alike: which of them is new is not known. */
function onlyOnes<Waiter extends { readonly owner: string }>(waiters: readonly Waiter[]): Map<string, Waiter> {
  const only = new Map<string, Waiter>()
  for (const [owner, [first, ...others]] of Map.groupBy(waiters, each => each.owner))
    if (first && others.length === 0) only.set(owner, first)
  return only
}

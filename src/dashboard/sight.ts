import type { LeaseRecord } from '../contract/store.ts'
import { Hold } from './hold.ts'

/** Holders of a name that are remembered. */
const KEPT_HOLDS = 20

/** A waiter, in the order of the store. */
export interface SeenWaiter {
  readonly owner: string
  readonly note: string
  /** Milliseconds since 1970 when it was first seen. It may wait for longer. */
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

  /** Takes in the records of one look at time `at`. Returns the lease that ended since the last look. */
  see(records: readonly LeaseRecord[], at: number): Hold | undefined {
    const last = this.hold
    this.holder = records.find(({ state }) => state === 'held')
    const known = new Map(this.waiters.map(({ owner, since }) => [owner, since]))
    this.waiters = records
      .filter(({ state }) => state === 'waiting')
      .map(({ owner, note }) => ({ owner, note, since: known.get(owner) ?? at }))
    const wasKnown = this.#isKnown
    this.#isKnown = true
    if (this.holder && last && last.token === `${this.holder.token ?? ''}`) {
      last.see(this.holder, at)
      return undefined
    }
    if (this.holder) {
      this.holds.unshift(new Hold(this.holder, at, wasKnown))
      this.holds.length = Math.min(this.holds.length, KEPT_HOLDS)
    }
    return last
  }
}

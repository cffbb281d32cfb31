import type { LeaseRecord } from '../contract/store.ts'

/** Holders of a name that are remembered. */
const KEPT_HOLDERS = 20

/** Somebody who held a name, as it was seen. */
export interface PastHolder {
  readonly owner: string
  readonly token: string
  /** Milliseconds since 1970, by the clock of this process: when it was first and last seen. */
  readonly from: number
  to: number
}

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
  holder: LeaseRecord | undefined
  waiters: readonly SeenWaiter[] = []
  /** The newest first. */
  readonly holders: PastHolder[] = []

  constructor(name: string) {
    this.name = name
  }

  /** Takes in the records of one look at time `at`. Returns whether another owner holds the name than before. */
  see(records: readonly LeaseRecord[], at: number): boolean {
    this.holder = records.find(({ state }) => state === 'held')
    const known = new Map(this.waiters.map(({ owner, since }) => [owner, since]))
    this.waiters = records
      .filter(({ state }) => state === 'waiting')
      .map(({ owner, note }) => ({ owner, note, since: known.get(owner) ?? at }))
    if (!this.holder) return false
    const { owner } = this.holder
    const token = `${this.holder.token ?? ''}`
    const [last] = this.holders
    if (last?.token === token) {
      last.to = at
      return false
    }
    this.holders.unshift({ owner, token, from: at, to: at })
    this.holders.length = Math.min(this.holders.length, KEPT_HOLDERS)
    return last !== undefined && last.owner !== owner
  }
}

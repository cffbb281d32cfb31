import type { LeaseRecord } from '../contract/store.ts'

/** Tokens before this are counters or revisions, not times: microseconds since 1970, in 2020. */
const EARLIEST = 1_577_836_800_000_000n

/** Milliseconds by which the time left must rise against both clocks before that counts as a renewal. */
const RISE = 50

/** A lease that was renewed before has less of its ttl left only if two renewals in a row failed. */
const LEAST_LEFT = 0.45

/** Changes of a note that are remembered. */
const KEPT_INTERVALS = 20

/** What was seen of one lease, from its grant to its end. */
export class Hold {
  readonly owner: string
  readonly token: string
  readonly slots: readonly number[]
  /** 1: it is held alone. */
  readonly limit: number
  /** Milliseconds since 1970: when it was granted, or first seen. Its holder may hold it for longer. */
  readonly since: number
  /** Is `since` the grant, by the token or because the name was watched before? */
  readonly isSinceGrant: boolean
  /** Milliseconds since 1970, when it was last seen. */
  seen: number
  /** Milliseconds: the time left when it was last seen to be renewed, or first seen. It is nearly its ttl. */
  most: number
  remaining: number
  /** Was it seen to be renewed? */
  isRenewed = false
  /** Milliseconds since 1970, since when the note was not seen to change. */
  noteSince: number
  /** Milliseconds between changes of the note. */
  readonly noteIntervals: number[] = []
  note: string

  constructor(record: LeaseRecord, at: number, wasWatched: boolean) {
    const granted = timeOf(record.token, at)
    this.owner = record.owner
    this.token = `${record.token ?? ''}`
    this.since = granted ?? at
    this.isSinceGrant = granted !== undefined || wasWatched
    this.seen = at
    this.noteSince = at
    this.slots = record.slots ?? [0]
    this.limit = record.limit ?? 1
    this.note = record.note
    this.remaining = record.remaining
    this.most = record.remaining
  }

  /** Takes in what a look at time `at` showed. At least `passed` ms passed since the last look. */
  see({ remaining, note }: LeaseRecord, at: number, passed: number): void {
    // The time left of some stores follows the wall clock of this machine. So a step of it is no renewal either.
    const expected = this.remaining - Math.min(passed, at - this.seen)
    if (remaining > expected + RISE) {
      this.isRenewed = true
      this.most = remaining // not the most ever: an extension may have given it a shorter ttl
    }
    this.seen = at
    this.remaining = remaining
    if (note === this.note) return
    this.noteIntervals.push(at - this.noteSince)
    if (this.noteIntervals.length > KEPT_INTERVALS) this.noteIntervals.shift()
    this.note = note
    this.noteSince = at
  }

  /** Was it renewed before, and not any more? A marker is never renewed, nor a lease of a fixed term. */
  get isOverdue(): boolean {
    return this.isRenewed && this.remaining <= LEAST_LEFT * this.most
  }

  /** Milliseconds for which it was held, at least. */
  get age(): number {
    return this.seen - this.since
  }
}

/**
 * When a lease was granted, if its token says so. Most stores never hand out a token below their wall clock in
 * microseconds. A token may be above it, so one that is later than now says nothing.
 */
function timeOf(token: bigint | undefined, now: number): number | undefined {
  if (token === undefined || token < EARLIEST) return undefined
  const time = Number(token / 1000n)
  return time <= now ? time : undefined
}

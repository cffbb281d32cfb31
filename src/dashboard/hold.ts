import type { LeaseRecord } from '../contract/store.ts'

/** The year 2020 in microseconds since 1970. Lower tokens are counters or revisions, not times. */
const EARLIEST = 1_577_836_800_000_000n

/** Milliseconds by which the time left must rise, by both clocks, to count as a renewal. */
const RISE = 50

/** The share of its ttl that a renewed lease has left unless two renewals in a row failed. */
const LEAST_LEFT = 0.45

/** The number of changes of a note that are remembered. */
const KEPT_INTERVALS = 20

/** What was seen of one lease, from its grant to its end. */
export class Hold {
  readonly owner: string
  readonly token: string
  readonly slots: readonly number[]
  /** The limit of the lease. 1: it is held alone. */
  readonly limit: number
  /** The time of its grant, or when it was first seen, in milliseconds since 1970. It may be older than that. */
  readonly since: number
  /** Is `since` the grant, by the token or because the name was watched before? */
  readonly isSinceGrant: boolean
  /** The time at which it was last seen, in milliseconds since 1970. */
  seen: number
  /** Milliseconds that remained at the last renewal that was seen, or when it was first seen. It is nearly its ttl. */
  most: number
  remaining: number
  /** Was it seen to be renewed? */
  isRenewed = false
  /** The time of the last change of the note that was seen, in milliseconds since 1970. */
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
    // For some stores the time left depends on the wall clock of this machine. A step of that clock is not a renewal.
    const expected = this.remaining - Math.min(passed, at - this.seen)
    if (remaining > expected + RISE) {
      this.isRenewed = true
      this.most = remaining // not the most so far: an extension may have given it a shorter ttl
    }
    this.seen = at
    this.remaining = remaining
    if (note === this.note) return
    this.noteIntervals.push(at - this.noteSince)
    if (this.noteIntervals.length > KEPT_INTERVALS) this.noteIntervals.shift()
    this.note = note
    this.noteSince = at
  }

  /** Was it renewed before, but no longer? A marker and a lease of a fixed term are never renewed. */
  get isOverdue(): boolean {
    return this.isRenewed && this.remaining <= LEAST_LEFT * this.most
  }

  /** The least time for which it was held, in milliseconds. */
  get age(): number {
    return this.seen - this.since
  }
}

/**
 * The time at which a lease was granted, if its token shows it. Most stores never hand out a token below their wall clock in
 * microseconds. A token may be above it, so one that is later than now says nothing.
 */
function timeOf(token: bigint | undefined, now: number): number | undefined {
  if (token === undefined || token < EARLIEST) return undefined
  const time = Number(token / 1000n)
  return time <= now ? time : undefined
}

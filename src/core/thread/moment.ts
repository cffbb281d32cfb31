/** A moment by both clocks that all threads of a process share: neither has an origin or a history of its own. */
export interface Moment {
  /** Nanoseconds of `process.hrtime`; `performance.now()` begins at another moment in each thread. */
  readonly monotonic: bigint
  /** Milliseconds since 1970. It goes on while the machine sleeps, and can be set. */
  readonly wall: number
}

/** This moment. */
export function momentNow(): Moment {
  return { monotonic: process.hrtime.bigint(), wall: Date.now() }
}

/** Milliseconds from one moment to another: the larger of what the two clocks show, as everywhere in Holdfast. */
export function elapsed(from: Moment, to: Moment): number {
  return Math.max(Number(to.monotonic - from.monotonic) / 1e6, to.wall - from.wall)
}

/** A point in time by both clocks that all threads of a process share. */
export interface Timestamp {
  /** Nanoseconds of `process.hrtime`. `performance.now()` has another origin in each thread. */
  readonly monotonic: bigint
  /** Milliseconds since 1970. Counts while the machine sleeps, and can be set. */
  readonly wall: number
}

export function timestampNow(): Timestamp {
  return { monotonic: process.hrtime.bigint(), wall: Date.now() }
}

/** Milliseconds between two timestamps, by the clock that shows more. */
export function elapsed(from: Timestamp, to: Timestamp): number {
  return Math.max(Number(to.monotonic - from.monotonic) / 1e6, to.wall - from.wall)
}

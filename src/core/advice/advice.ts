/** What renewals have shown so far, and the least ttl that follows. Plain data; all times in milliseconds. */
export interface Advice {
  /** Renewals that were answered. */
  readonly heartbeats: number
  /** Renewal requests that failed, or timed out after min(5 s, ttl / 3). */
  readonly failed: number
  /** The time from the request of a renewal to its answer; `undefined` without answers. Accurate to 1 %. */
  readonly latency: Latency | undefined
  /** The longest time without an answer from the store: the worst latency, or consecutive failures. */
  readonly unresponsiveness: number
  /**
   * The worst delay of the event loop, accurate to 50 ms, measured from the first renewal of a lease until no lease is held.
   * With `heartbeat: 'thread'` it is the delay of that thread.
   */
  readonly loopDelay: number
  /** The least ttl that tolerates all of this and one lost heartbeat; `undefined` after fewer than 100 heartbeats. */
  readonly leastTtl: number | undefined
  /** One sentence with the numbers that decide, or with what is missing. */
  readonly reason: string
}

/** Percentiles of the latency of renewals, in milliseconds. */
export interface Latency {
  readonly p50: number
  readonly p99: number
  /** `undefined` after fewer than 1,000 answers, where it would be the worst. */
  readonly p999: number | undefined
  readonly worst: number
}

/** What renewals have shown so far, and the least ttl that follows from it. Plain data, all times in milliseconds. */
export interface Advice {
  /** Renewals that were answered. */
  readonly heartbeats: number
  /** Requests for a renewal that failed or were not answered within their limit, which is min(5 s, ttl / 3). */
  readonly failed: number
  /** From the request of a renewal to its answer; `undefined` without any. To within 1 %. */
  readonly latency: Latency | undefined
  /** The longest time for which the store answered nothing that it was asked: the worst latency, or a row of failures. */
  readonly silence: number
  /**
   * The worst delay of the event loop, to within 50 ms, from the first renewal of a lease until none is held. Delays of
   * other times are not seen, nor are those of a thread whose leases another renews (`heartbeat: 'thread'`).
   */
  readonly loopDelay: number
  /** The least ttl that bears all of this and a lost heartbeat; `undefined` after fewer than 100 heartbeats. */
  readonly leastTtl: number | undefined
  /** A sentence with the numbers that decide, or what is missing. */
  readonly reason: string
}

/** Milliseconds that so many percent of the renewals took at most. */
export interface Latency {
  readonly p50: number
  readonly p99: number
  readonly p999: number
  readonly worst: number
}

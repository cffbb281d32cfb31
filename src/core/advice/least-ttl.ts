import { margin } from '../../contract/time.ts'
import { LONGEST_DELAY } from '../../contract/timers.ts'
import { longestGap } from '../heartbeat.ts'

/** What determines the least ttl. Milliseconds. */
export interface Measured {
  /** Latency of renewals. */
  readonly p99: number
  /** The longest time without an answer from the store. */
  readonly unresponsiveness: number
  /** The worst delay of the event loop. */
  readonly loopDelay: number
  /** The store's. */
  readonly minTtl: number
}

/** The least ttl in p99s. About three tolerate what was measured, the others are for what was not. */
export const LEAST_P99S = 10

/**
 * How many ms of unresponsiveness and event loop delay, in sum, a lease of this ttl tolerates at any moment, in addition
 * to one lost renewal. Negative if it does not even tolerate the lost renewal.
 */
export function tolerance(ttl: number): number {
  return ttl - margin(ttl) - longestGap(ttl)
}

/** The least ttl for these measurements, in whole milliseconds, and the reason. docs/operations/ttl.md derives it. */
export function leastTtl({ p99, unresponsiveness, loopDelay, minTtl }: Measured): { ttl: number; reason: string } {
  const tolerant = leastTolerant(unresponsiveness + loopDelay)
  const figures = `p99 ${show(p99)}, unresponsive ${show(unresponsiveness)}, worst loop delay ${show(loopDelay)}`
  const candidates = [
    { ttl: tolerant, why: 'to tolerate these and one lost heartbeat' },
    { ttl: Math.ceil(LEAST_P99S * p99), why: `which is ${LEAST_P99S} times the p99` },
    { ttl: minTtl, why: 'the shortest ttl of this store' },
  ]
  const { ttl, why } = candidates.reduce((longest, next) => (next.ttl > longest.ttl ? next : longest))
  return { ttl, reason: `${figures}: ttl >= ${ttl} ms, ${why}` }
}

/** The least whole ttl that tolerates `ms`. The tolerance rises with the ttl. */
function leastTolerant(ms: number): number {
  let [tooShort, ttl] = [0, LONGEST_DELAY]
  while (ttl - tooShort > 1) {
    const middle = Math.floor((tooShort + ttl) / 2)
    if (tolerance(middle) >= ms) ttl = middle
    else tooShort = middle
  }
  return ttl
}

/** With two digits below 10 ms. */
function show(ms: number): string {
  return `${ms < 10 ? Number(ms.toPrecision(2)) : Math.round(ms)} ms`
}

import { margin } from '../../contract/time.ts'
import { LONGEST_DELAY } from '../../contract/timers.ts'
import { longestGap } from '../heartbeat.ts'

/** The measurements that determine the least ttl, in milliseconds. */
export interface Measured {
  /** The p99 latency of renewals. */
  readonly p99: number
  /** The longest time without an answer from the store. */
  readonly unresponsiveness: number
  /** The worst delay of the event loop. */
  readonly loopDelay: number
  /** The `minTtl` of the store. */
  readonly minTtl: number
}

/** The fewest answers for a p99.9. With fewer, it is the worst latency. */
export const LEAST_P999 = 1_000

/** The least ttl as a multiple of the p99. About three times tolerates what was measured; the rest is a reserve. */
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

/** Formats milliseconds. Values below 10 ms get two digits. */
function show(ms: number): string {
  return `${ms < 10 ? Number(ms.toPrecision(2)) : Math.round(ms)} ms`
}

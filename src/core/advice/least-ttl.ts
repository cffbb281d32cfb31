import { margin } from '../../contract/time.ts'
import { LONGEST_DELAY } from '../../contract/timers.ts'
import { longestGap } from '../heartbeat.ts'

/** What decides how short a ttl may be. Milliseconds. */
export interface Measured {
  /** Of the latency of renewals. */
  readonly p99: number
  /** The longest time for which the store answered nothing that it was asked. */
  readonly silence: number
  /** The longest delay of the event loop. */
  readonly loopDelay: number
  /** Of the store. */
  readonly shortestTtl: number
}

/** A ttl is this many times the p99 at least: a third of that bears the worst that was seen, the rest is for worse. */
export const LEAST_P99S = 10

/**
 * Milliseconds of silence of the store and of delay of the event loop, together, that a lease of this ttl lives through
 * at any moment, although one of its renewals is lost as well. Negative if it does not even bear that one.
 */
export function spareOf(ttl: number): number {
  return ttl - margin(ttl) - longestGap(ttl)
}

/** The least whole ttl, in milliseconds, that what was measured allows, and why. docs/choosing-a-ttl.md derives it. */
export function leastTtl({ p99, silence, loopDelay, shortestTtl }: Measured): { ttl: number; reason: string } {
  const bearing = ttlThatSpares(silence + loopDelay)
  const figures = `p99 ${show(p99)}, longest silence ${show(silence)}, worst loop delay ${show(loopDelay)}`
  const candidates = [
    { ttl: bearing, why: 'to live through these and one lost heartbeat' },
    { ttl: Math.ceil(LEAST_P99S * p99), why: `which is ${LEAST_P99S} times the p99` },
    { ttl: shortestTtl, why: 'the shortest that is sensible over this store' },
  ]
  const { ttl, why } = candidates.reduce((longest, next) => (next.ttl > longest.ttl ? next : longest))
  return { ttl, reason: `${figures}: ttl >= ${ttl} ms, ${why}` }
}

/** The least whole ttl that spares so much; what it spares rises with it. */
function ttlThatSpares(ms: number): number {
  let [tooShort, ttl] = [0, LONGEST_DELAY]
  while (ttl - tooShort > 1) {
    const middle = Math.floor((tooShort + ttl) / 2)
    if (spareOf(middle) >= ms) ttl = middle
    else tooShort = middle
  }
  return ttl
}

/** Two digits of what is below 10 ms. */
function show(ms: number): string {
  return `${ms < 10 ? Number(ms.toPrecision(2)) : Math.round(ms)} ms`
}

import type { Claim } from '../../contract/store.ts'
import { positionLifetime } from '../rules/name.ts'

/**
 * The time between two polls in milliseconds, times the position: at random between the first two, and at most the third.
 * So the first two waiters ask at least once in every grace period, which keeps the order. The others ask rarely.
 */
const [SHORTEST_POLL, LONGEST_POLL, FARTHEST_POLL] = [15, 45, 150]

/**
 * Milliseconds until a claim asks again if nothing wakes it. It may be granted after `delay`, and a waiter must keep its
 * position. A claim that nothing can wake (`isNotified` false) polls.
 */
export function retryAfter(delay: number, ahead: number, { ttl, queue }: Claim, isNotified: boolean): number {
  const soonest = Math.max(delay, 1)
  if (!queue) return soonest
  return Math.min(soonest, positionLifetime(ttl) / 3, isNotified ? Number.POSITIVE_INFINITY : pollAfter(ahead))
}

function pollAfter(ahead: number): number {
  const pause = SHORTEST_POLL + (LONGEST_POLL - SHORTEST_POLL) * Math.random()
  return Math.min((ahead + 1) * pause, FARTHEST_POLL)
}

import type { Claim } from '../../contract/store.ts'
import { positionLifetime } from '../rules/name.ts'

/**
 * Milliseconds between two polls times the position, at random between the first two, and at most the third. The first
 * two waiters then ask at least once in every grace period, which keeps the order. The others ask rarely.
 */
const [SHORTEST_POLL, LONGEST_POLL, FARTHEST_POLL] = [15, 45, 150]

/**
 * Milliseconds until a claim asks again if nothing wakes it: after `delay` it may be granted, and a waiter must keep its
 * position. One that nothing can wake (`isNotified` false) polls.
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

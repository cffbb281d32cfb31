import type { Claim } from '../../contract/store.ts'
import { positionLifetime } from '../rules/name.ts'

/** The shortest time between two polls of the first waiter, in milliseconds. */
const SHORTEST_POLL = 15

/**
 * The longest one. Waiters multiply it by their position. So the first two ask at least once in every grace period, which
 * keeps the order, and the others ask rarely.
 */
export const LONGEST_POLL = 45

/** The longest time between two polls of any waiter, in milliseconds. */
export const FARTHEST_POLL = 150

/**
 * Milliseconds until a claim asks again if nothing wakes it. It may be granted after `delay`, and a waiter must keep its
 * position. A claim that nothing can wake (`isNotified` false) polls.
 */
export function retryAfter(delay: number, ahead: number, { ttl, queue }: Claim, isNotified: boolean): number {
  const soonest = Math.max(delay, 1)
  if (!queue) return soonest
  return Math.min(soonest, positionLifetime(ttl) / 3, isNotified ? Number.POSITIVE_INFINITY : pollAfter(ahead))
}

/** The random time between two polls of the first waiter, in milliseconds. */
export function pollPause(): number {
  return SHORTEST_POLL + (LONGEST_POLL - SHORTEST_POLL) * Math.random()
}

function pollAfter(ahead: number): number {
  return Math.min((ahead + 1) * pollPause(), FARTHEST_POLL)
}

import { LONG_TURNS, roundTripOf, turnAfter } from '../../contract/time.ts'

/**
 * The rules of a queue, the same in every store that has one. First come, first served: when the name is freed, the first
 * waiter has a grace period to take it, then the second may too, and so on. So a dead waiter costs one grace period and
 * never blocks. The grace period of a waiter is longer by its round trip. For the claims behind it, the name counts as freed
 * later by that time (`roundTrips`). Behind ten waiters the grace periods are short, so a process that died with hundreds
 * does not block either. A claim that does not queue comes after all of them, so it never overtakes.
 */

/** Milliseconds for which a waiter that stops asking keeps its position: it asks again at a third of that. */
export function placeLifetime(ttl: number): number {
  return Math.max(ttl, 1_000)
}

interface Waiter {
  readonly roundTrip?: number | undefined
}

/** Milliseconds that the round trips of the first `ahead` waiters of a queue add to their grace periods. */
export function roundTrips(queue: Iterable<Waiter>, ahead: number = LONG_TURNS): number {
  let [sum, left] = [0, Math.min(ahead, LONG_TURNS)]
  for (const { roundTrip } of queue) {
    if (left-- <= 0) break
    sum += roundTripOf(roundTrip)
  }
  return sum
}

/** May a claim with `ahead` waiters before it take the name that was freed at `freeSince`, round trips included? */
export function mayTake(now: number, freeSince: number, ahead: number): boolean {
  return now >= freeSince + turnAfter(ahead)
}

/**
 * Milliseconds until a waiter asks again if nothing wakes it: when it may take the name after the lease expires, or to keep
 * its position, whichever is sooner. Without a position (`queue` false) only the former counts. A waiter that nothing can
 * wake (`isNotified` false) polls. `freeAt` includes the round trips of those ahead.
 */
export function askAgainAfter(
  now: number,
  freeAt: number,
  ahead: number,
  ttl: number,
  queue: boolean,
  isNotified = true,
): number {
  const free = Math.max(freeAt + turnAfter(ahead) - now, 1)
  if (!queue) return free
  return Math.min(free, placeLifetime(ttl) / 3, isNotified ? Number.POSITIVE_INFINITY : pollAfter(ahead))
}

/**
 * Milliseconds between two polls times the position, at random between the first two, and at most the third. The first
 * two waiters then ask at least once in every grace period, which keeps the order. The others ask rarely.
 */
const [SHORTEST_POLL, LONGEST_POLL, FARTHEST_POLL] = [15, 45, 150]

function pollAfter(ahead: number): number {
  const pause = SHORTEST_POLL + (LONGEST_POLL - SHORTEST_POLL) * Math.random()
  return Math.min((ahead + 1) * pause, FARTHEST_POLL)
}

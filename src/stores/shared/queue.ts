import { TURN } from '../../contract/time.ts'

/**
 * The rules of a line of waiters, the same in every store that keeps one. First come, first served: when the name
 * falls free the head has one turn to take it, then the next may, and so on, so that a dead waiter costs one turn and
 * never blocks. A claim that does not queue stands behind all of them and so never overtakes.
 */

/** Milliseconds for which a waiter that asks no more keeps its place: it asks again at a third of that. */
export function placeLifetime(ttl: number): number {
  return Math.max(ttl, 1_000)
}

/**
 * Milliseconds after which a waiter asks again that nobody can wake, times its place in line, at random between these:
 * the first two then ask at least once in every turn, which keeps the order, and the others leave the server in peace.
 */
const [SHORTEST_POLL, LONGEST_POLL, FARTHEST_POLL] = [15, 45, 150]

/** May a claim with `ahead` waiters before it take the name that fell free at `freeSince`? */
export function mayTake(now: number, freeSince: number, ahead: number): boolean {
  return now >= freeSince + ahead * TURN
}

/**
 * Milliseconds until a waiter asks again if nothing wakes it: at its turn after the moment when the name falls free by
 * itself, or to keep its place, whichever is sooner. Without a place (`queue` false) only the former counts.
 */
export function askAgainAfter(now: number, freeAt: number, ahead: number, ttl: number, queue: boolean): number {
  const turn = Math.max(freeAt + ahead * TURN - now, 1)
  return queue ? Math.min(turn, placeLifetime(ttl) / 3) : turn
}

/** Milliseconds until a waiter asks again that nobody can wake. */
export function pollAfter(ahead: number): number {
  const turn = SHORTEST_POLL + (LONGEST_POLL - SHORTEST_POLL) * Math.random()
  return Math.min((ahead + 1) * turn, FARTHEST_POLL)
}

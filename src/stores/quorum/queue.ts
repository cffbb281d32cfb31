import { TURN } from '../../contract/time.ts'

// Each server of a quorum has its own queue. The queue decides only which waiter the server notifies, and how soon a waiter
// asks by itself: a vote does not depend on it. After each grace period one more waiter asks. Behind ten waiters the grace
// periods are short, so a process that died with hundreds of waiters delays the others little.

/** The grace period in milliseconds of each waiter behind the first ten. */
export const SHORT_TURN = 2

/** The additional milliseconds of the longer grace periods of the first ten. */
export const FIRST_TURNS: number = 10 * (TURN - SHORT_TURN)

/** Milliseconds after which a waiter asks for a free name, by the number of waiters ahead. */
export function turnAfter(ahead: number): number {
  return Math.min(ahead * TURN, FIRST_TURNS + ahead * SHORT_TURN)
}

/** Milliseconds for which a waiter that stops asking keeps its position. A waiter asks again after a third of that. */
export function placeLifetime(ttl: number): number {
  return Math.max(ttl, 1_000)
}

/**
 * Milliseconds until a waiter asks again if nothing wakes it. It asks when the name is free, which is in `remaining` ms, or
 * to keep its position, whichever is sooner. Without a position (`queue` false) only the former counts.
 */
export function askAgainAfter(remaining: number, ahead: number, ttl: number, queue: boolean): number {
  const free = Math.max(remaining + turnAfter(ahead), 1)
  return queue ? Math.min(free, placeLifetime(ttl) / 3) : free
}

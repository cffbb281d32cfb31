import { turnAfter } from '../../contract/time.ts'

// Each server of a quorum has a queue of its own. When it frees the name, the first waiter has a grace period to take it,
// then the second may too, and so on. Behind ten waiters the grace periods are short, so a process that died with hundreds
// does not block. A claim that does not queue comes after all of them.

/** Milliseconds for which a waiter that stops asking keeps its position: it asks again at a third of that. */
export function placeLifetime(ttl: number): number {
  return Math.max(ttl, 1_000)
}

/**
 * Milliseconds until a waiter asks again if nothing wakes it: when it may take a name that is free in `remaining` ms, or to
 * keep its position, whichever is sooner. Without a position (`queue` false) only the former counts.
 */
export function askAgainAfter(remaining: number, ahead: number, ttl: number, queue: boolean): number {
  const free = Math.max(remaining + turnAfter(ahead), 1)
  return queue ? Math.min(free, placeLifetime(ttl) / 3) : free
}

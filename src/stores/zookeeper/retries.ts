import { LeaseError } from '../../contract/errors.ts'
import type { Clock } from '../../contract/time.ts'

/** The largest number of attempts of a request while others keep changing the queue. */
export const MAX_ATTEMPTS = 10

export function tooManyChanges(name: string): LeaseError {
  return new LeaseError(
    'STORE_UNAVAILABLE',
    `the queue of ${JSON.stringify(name)} changed during each of ${MAX_ATTEMPTS} attempts: retry`,
  )
}

/**
 * The pauses in milliseconds. The first pause is at most the shortest, and each later limit is twice as long, up to the
 * longest.
 */
const [SHORTEST_PAUSE, LONGEST_PAUSE] = [4, 128]

/** Waits for a random time after a conflict, so that processes that try at the same time do not conflict again. */
export function pauseAfter(attempt: number, clock: Clock): Promise<void> {
  const longest = Math.min(SHORTEST_PAUSE * 2 ** attempt, LONGEST_PAUSE)
  return new Promise(resolve => void clock.after(longest * Math.random(), resolve))
}

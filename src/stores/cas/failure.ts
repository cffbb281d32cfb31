import { LeaseError } from '../../contract/errors.ts'

/** The largest token that a record can keep. */
export const LAST_TOKEN: number = Number.MAX_SAFE_INTEGER

/** A write of the request may have happened. */
export function unknown(name: string, cause?: unknown): LeaseError {
  const why = cause instanceof Error ? cause.message : 'too much was written since'
  const message = `it is not known whether a request for ${JSON.stringify(name)} was carried out: ${why}`
  return new LeaseError('OUTCOME_UNKNOWN', message, { cause })
}

/** The time for the request is over, and nothing of it was written. */
export function contended(name: string, limit: number): LeaseError {
  const what = `the record of ${JSON.stringify(name)} could not be written within ${Math.round(limit)} ms, and nothing was done`
  return new LeaseError('STORE_UNAVAILABLE', `${what}: others wrote it first, or this process was busy; retry`)
}

/** The record has no room for another holder or waiter. */
export function full(name: string, claims: number, maxBytes: number): LeaseError {
  const what = `the record of ${JSON.stringify(name)} has room for ${maxBytes} bytes, and is full with ${claims} holders and waiters`
  return new LeaseError('TOO_MANY_WAITERS', `${what}: try later, or let fewer hold and wait`, { waited: 0 })
}

/** The next token would not be exact. */
export function usedUp(name: string): LeaseError {
  const message =
    `${JSON.stringify(name)} has used up its tokens (${LAST_TOKEN}): the clock of a machine is or was beyond the year ` +
    '2255. End the holder, delete the record, and begin the next epoch of fences that saw that token'
  return new LeaseError('STORE_UNAVAILABLE', message, { retryable: false })
}

import { randomInt } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { type AcquireOptions, LeaseError, type LeaseSet, type Locks } from '../../src/index.ts'

/** Several permits over servers that keep no queue. */
export interface SeveralTickets {
  readonly name: string
  readonly limit: number
  readonly permits: number
}

/** The most tickets that one round asks for, besides those that it needs. */
const MOST_TRIED = 16

/** Milliseconds between two rounds: the shortest pause, and the longest. */
const PAUSES = [50, 150] as const

/**
 * Several tickets of a semaphore, all or none. A permit is a lease on a ticket there, so several are a set of names. Calls
 * for one permit may starve it: nothing is held while it waits. Rejects `BUSY` after `wait`, and as `Locks.all`.
 */
export async function acquireTickets(
  locks: Locks,
  { name, limit, permits }: SeveralTickets,
  how: AcquireOptions & { readonly wait: number },
): Promise<LeaseSet> {
  if (!Number.isInteger(permits) || permits > limit)
    throw new LeaseError('INVALID_ARGUMENT', `permits must be a whole number from 1 to ${limit}, not ${permits}`)
  const started = performance.now()
  for (;;) {
    try {
      return await round(locks, ticketsOf(name, limit, permits + MOST_TRIED), permits, how)
    } catch (error) {
      const left = how.wait - (performance.now() - started)
      if (!LeaseError.is(error, 'BUSY') || left <= 0) throw error
      await sleep(Math.min(randomInt(...PAUSES), left), undefined, { signal: how.signal }).catch(() => {
        throw how.signal?.reason
      })
    }
  }
}

/** Asks for some tickets together, and for another in place of each that is busy. */
async function round(locks: Locks, tickets: string[], permits: number, how: AcquireOptions): Promise<LeaseSet> {
  let wanted = tickets.splice(0, permits)
  for (;;) {
    try {
      return await locks.all(wanted).acquire({ ...how, wait: 0 })
    } catch (error) {
      const next = tickets.pop()
      if (!LeaseError.is(error, 'BUSY') || next === undefined) throw error
      wanted = [...wanted.filter(each => each !== error.leaseName), next]
    }
  }
}

/** The names of `count` tickets, from a random one. Ticket 0 has the name of the semaphore, as in `locks.semaphore`. */
function ticketsOf(name: string, limit: number, count: number): string[] {
  const first = randomInt(limit)
  const tickets = Array.from({ length: Math.min(count, limit) }, (_, index) => (first + index) % limit)
  return tickets.map(ticket => (ticket === 0 ? name : `${name}#${ticket}`))
}

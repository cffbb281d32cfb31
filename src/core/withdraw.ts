import { LeaseError } from '../contract/errors.ts'
import { events } from '../contract/events.ts'
import type { Lease } from '../contract/lease.ts'
import { backoff, pause, request } from '../contract/request.ts'
import type { Claim } from '../contract/store.ts'
import { LAST_REQUEST, LAST_WITHDRAWAL, LONGEST_REQUEST, requestLimit } from '../contract/time.ts'
import type { Core } from './core.ts'

/** How often at most a withdrawal is repeated so that a late copy of a request finds it: each copy runs once. */
const MOST_REPEATS = 3

/**
 * Withdraws a claim, with limits of its own: min(5 s, ttl) in all. It keeps the process alive for 1 s at most, and not at
 * all if a held `lease` is released: its caller does. `unsettled` says that a request of this claim went unanswered and
 * may still arrive; then the store is asked until it says that the claim is gone, because only that makes it remember to
 * refuse the late one. Never rejects. `unknown` is also the event `release_failed`: the store did not confirm, or it did
 * not know the held `lease` after a release that failed, or after `endsAt`, when the ttl alone had ended it.
 */
export async function withdraw(
  core: Core,
  claim: Claim,
  unsettled: boolean,
  lease?: Lease,
  endsAt: number = Number.POSITIVE_INFINITY,
): Promise<'released' | 'gone' | 'unknown'> {
  const { clock, store } = core
  const { name, owner } = claim
  const stopKeepingAlive = lease ? undefined : clock.after(LAST_WITHDRAWAL, () => {})
  const giveUp = clock.now() + Math.min(LONGEST_REQUEST, claim.ttl)
  const background = true
  const unknown = (error: LeaseError): 'unknown' => {
    if (events.release_failed.hasSubscribers) events.release_failed.publish({ name, owner, lease, error })
    return 'unknown'
  }
  let released = false
  let repeats = unsettled ? MOST_REPEATS : 0
  try {
    for (let failures = 0; ; ) {
      const limit = Math.min(requestLimit(claim.ttl), Math.max(giveUp - clock.now(), LAST_REQUEST))
      try {
        const answer = await request(clock, limit, signal => store.release(claim, signal), { background })
        if (answer === 'gone') {
          if (released) return 'released'
          const isLate = clock.now() >= endsAt
          if ((failures === 0 && !isLate) || !lease) return 'gone'
          const what = isLate ? 'ended while it was released' : 'was gone when its release was repeated after a failure'
          const message = `the lease ${JSON.stringify(name)} ${what}`
          return unknown(new LeaseError('OUTCOME_UNKNOWN', message, { lease: name }))
        }
        released = true
        if (repeats-- <= 0) return 'released'
      } catch (reason) {
        const error = reason as LeaseError
        failures += 1
        if (events.request_failed.hasSubscribers)
          events.request_failed.publish({ request: 'release', name, owner, error })
        const delay = backoff(failures, core.random)
        if (!error.retryable || clock.now() + delay >= giveUp) return unknown(error)
        await pause(clock, delay, { background })
      }
    }
  } finally {
    stopKeepingAlive?.()
  }
}

import type { Core } from './core.ts'
import type { LeaseError } from './errors.ts'
import { events } from './events.ts'
import type { Lease } from './lease.ts'
import { backoff, pause, request } from './request.ts'
import type { Claim } from './store.ts'
import { LAST_REQUEST, LONGEST_REQUEST, requestLimit } from './time.ts'

/** How often at most a withdrawal is repeated so that a late copy of a request finds it: each copy runs once. */
const MOST_REPEATS = 3

/**
 * Withdraws a claim, with limits of its own: min(5 s, ttl) in all. `unsettled` says that a request of this claim went
 * unanswered and may still arrive; then the store is asked until it says that the claim is gone, because only that
 * makes it remember to refuse the late one. Rejects when the store does not confirm, which is also an event, of `lease` if
 * it had been granted.
 */
export async function withdraw(
  core: Core,
  claim: Claim,
  unsettled: boolean,
  lease?: Lease,
): Promise<'released' | 'gone'> {
  const { clock, store } = core
  const giveUp = clock.now() + Math.min(LONGEST_REQUEST, claim.ttl)
  let released = false
  let repeats = unsettled ? MOST_REPEATS : 0
  for (let failures = 0; ; ) {
    const limit = Math.min(requestLimit(claim.ttl), Math.max(giveUp - clock.now(), LAST_REQUEST))
    try {
      const answer = await request(clock, limit, signal => store.release(claim, signal))
      // Gone, after a release whose answer was lost, is what that release did.
      if (answer === 'gone') return released || failures > 0 ? 'released' : 'gone'
      released = true
      if (repeats-- <= 0) return 'released'
    } catch (reason) {
      const error = reason as LeaseError
      const { name, owner } = claim
      failures += 1
      if (events.request_failed.hasSubscribers)
        events.request_failed.publish({ request: 'release', name, owner, error })
      const delay = backoff(failures, core.random)
      if (!error.retryable || clock.now() + delay >= giveUp) {
        if (events.release_failed.hasSubscribers) events.release_failed.publish({ name, owner, lease, error })
        throw error
      }
      await pause(clock, delay)
    }
  }
}

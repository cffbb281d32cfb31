import { LeaseError } from '../contract/errors.ts'
import { events } from '../contract/events.ts'
import type { Lease } from '../contract/lease.ts'
import { backoff, pause, request } from '../contract/request.ts'
import type { Claim, Store } from '../contract/store.ts'
import {
  FIRST_TRY,
  LAST_REQUEST,
  LAST_WITHDRAWAL,
  LONGEST_REQUEST,
  LONGEST_TRY,
  requestLimit,
} from '../contract/time.ts'
import type { LeaseCore } from './core.ts'

/** The most repeats of a withdrawal, so that it finds what stale requests created. Each copy runs once. */
const MOST_REPEATS = 3

type WithdrawalCore = Pick<LeaseCore, 'clock' | 'random'> & { readonly store: Pick<Store, 'release'> }

/**
 * Withdraws a claim. It takes at most min(5 s, ttl). It keeps the process alive for at most 1 s, or not at all if it
 * releases a held `lease`, whose caller does. `unsettled`: a request of this claim was not answered and may still arrive.
 * Then it repeats the request until the store answers `gone`, because only that makes the store refuse the stale one.
 * Never rejects. `unknown` also emits `release_failed`: the store did not confirm, or it did not know the held `lease`
 * after a release that failed, or after `endsAt`, when the lease may have expired.
 */
export async function withdraw(
  core: WithdrawalCore,
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
    events.release_failed.publish({ name, owner, lease, error })
    return 'unknown'
  }
  let released = false
  let repeats = unsettled ? MOST_REPEATS : 0
  try {
    for (let failures = 0; ; ) {
      const limit = Math.min(
        requestLimit(claim.ttl),
        FIRST_TRY * LONGEST_TRY,
        Math.max(giveUp - clock.now(), LAST_REQUEST),
      )
      try {
        const answer = await request(clock, limit, signal => store.release(claim, signal), { background })
        if (answer === 'gone') {
          if (released) return 'released'
          const isLate = clock.now() >= endsAt
          if ((failures === 0 && !isLate) || !lease) return 'gone'
          const what = isLate ? 'ended while it was released' : 'was gone when its release was repeated after a failure'
          const message = `the lease ${JSON.stringify(name)} ${what}`
          return unknown(new LeaseError('OUTCOME_UNKNOWN', message, { leaseName: name }))
        }
        released = true
        if (repeats-- <= 0) return 'released'
      } catch (reason) {
        const error = reason as LeaseError
        failures += 1
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

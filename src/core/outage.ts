import { LeaseError } from '../contract/errors.ts'
import type { Claim } from '../contract/store.ts'

/** Requests of one call in a row that the store did not answer. */
export class Outage {
  failures = 0
  /** The last failure. A request that `wait` has cut short does not count. */
  error: LeaseError | undefined
  /** The time at which the store stopped answering. Time in which this process was paused is not counted. */
  #since: number

  constructor(since: number) {
    this.#since = since
  }

  /** Adds a failure, which came `late` ms after the limit of its request. `counts`: is the error the store's? */
  add(error: LeaseError, late: number, counts: boolean): void {
    this.failures += 1
    this.#since += Math.max(late, 0)
    if (counts) this.error = error
  }

  /** Called when the store has said when it will serve again. */
  restart(now: number): void {
    this.#since = now
  }

  lasts(now: number): number {
    return now - this.#since
  }

  /** The error of a call that gives up after `last`. It says how long the name may be held. */
  giveUp(last: LeaseError, { name, ttl }: Claim, now: number): LeaseError {
    const cause = this.error ?? last
    if (last.code !== 'OUTCOME_UNKNOWN') return cause
    const message =
      `${cause.message} (asked ${this.failures}x in ${Math.round(this.lasts(now))} ms); ` +
      `if it granted ${JSON.stringify(name)} nevertheless, that lease ends within ${ttl} ms`
    return new LeaseError('STORE_UNAVAILABLE', message, { leaseName: name, cause })
  }
}

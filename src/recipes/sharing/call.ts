import { LeaseError, type LeaseErrorOf } from '../../contract/errors.ts'
import { events } from '../../contract/events.ts'
import { randomId } from '../../contract/random-id.ts'
import { Cancel, request } from '../../contract/request.ts'
import { LONGEST_DELAY } from '../../contract/timers.ts'
import type { AcquireTerms } from '../../core/options.ts'
import { Attempt } from './attempt.ts'
import type { Demand } from './demand.ts'
import type { HeldPermit } from './held-permit.ts'
import type { SharingHost } from './host.ts'

/** One call that acquires a permit. */
export class Call {
  readonly #host: SharingHost
  readonly #demand: Demand
  readonly #terms: AcquireTerms
  readonly #cancel = new Cancel()
  #started = 0
  #requests = 0
  #last: Attempt | undefined

  constructor(host: SharingHost, demand: Demand, terms: AcquireTerms) {
    this.#host = host
    this.#demand = demand
    this.#terms = terms
  }

  /** An `ACQUIRE_TIMEOUT` if it was not acquired within `wait`. Rejects as `acquire` otherwise. */
  async run(): Promise<HeldPermit | LeaseErrorOf<'ACQUIRE_TIMEOUT'>> {
    const { core, closing } = this.#host
    const { name, kind } = this.#demand
    const { owner, ttl } = this.#terms
    const id = randomId()
    this.#started = core.clock.now()
    if (events.acquire_began.hasSubscribers) events.acquire_began.publish({ id, name, owner, ttl, kind })
    if (closing.signal.aborted) this.#cancel.cancel(closing.signal.reason) // by a listener
    const stop = this.#host.onAbort(this.#terms.signal, reason => this.#cancel.cancel(reason))
    const acquiring = this.#acquire()
    const entry = closing.calls.add({ cancel: this.#cancel, acquiring })
    try {
      const permit = await acquiring
      const waited = core.clock.now() - this.#started
      if (permit) {
        if (events.lease_acquired.hasSubscribers)
          events.lease_acquired.publish({ id, lease: permit.handle, waited, requests: this.#requests })
        permit.check() // it may be lost already, and the program may never look
        return permit
      }
      const error = this.#timeout()
      if (events.acquire_failed.hasSubscribers) events.acquire_failed.publish({ id, name, owner, error })
      return error
    } catch (error) {
      if (events.acquire_failed.hasSubscribers) events.acquire_failed.publish({ id, name, owner, error })
      throw error
    } finally {
      stop()
      closing.endCall(entry)
    }
  }

  async #acquire(): Promise<HeldPermit | undefined> {
    const { core } = this.#host
    const { heartbeat, wait } = this.#terms
    const cancel = this.#cancel
    cancel.throwIfCancelled()
    const renewer =
      heartbeat === 'thread'
        ? await request(core.clock, LONGEST_DELAY, () => this.#host.startRenewer(), { cancel })
        : undefined
    const giveUpAt = this.#started + wait
    for (;;) {
      const attempt = new Attempt(this.#host, this.#demand, this.#terms, renewer)
      cancel.throwIfCancelled()
      const permit = await this.#settled(attempt, wait > 0 ? giveUpAt : undefined)
      this.#requests += attempt.requests
      this.#last = attempt
      if (permit && cancel.cancelled) core.inBackground(permit.release())
      cancel.throwIfCancelled()
      if (permit) return permit
      if (!attempt.isGateLost || core.clock.now() >= giveUpAt) return undefined
    }
  }

  /** A cancelled call rejects at once. What the attempt still withdraws goes on in the background. */
  #settled(attempt: Attempt, giveUpAt: number | undefined): Promise<HeldPermit | undefined> {
    const cancel = this.#cancel
    const running = attempt.run(giveUpAt)
    return new Promise((resolve, reject) => {
      const stop = (reason: unknown): void => {
        attempt.cancel(reason)
        this.#host.core.inBackground(running.then(permit => permit?.release()).catch(() => {}))
        reject(reason)
      }
      cancel.step(stop)
      running.then(resolve, reject).finally(() => cancel.endStep(stop))
    })
  }

  #timeout(): LeaseErrorOf<'ACQUIRE_TIMEOUT'> {
    const { name, slots, want } = this.#demand
    const waited = Math.round(this.#host.core.clock.now() - this.#started)
    const failed = this.#terms.wait > 0 ? `was not acquired within ${waited} ms` : 'was not acquired'
    const { holder, hasEntered = false, held = 0 } = this.#last ?? {}
    const all = slots.length === 1 ? 'its only slot is' : `its ${slots.length} slots are`
    const busy = want > 1 ? `only ${held} of the ${want} slots that it needs were free` : `${all} held`
    const message = `${JSON.stringify(name)} ${failed}: ${hasEntered ? busy : 'other calls are before this one'}`
    return new LeaseError('ACQUIRE_TIMEOUT', message, { lease: name, holder })
  }
}

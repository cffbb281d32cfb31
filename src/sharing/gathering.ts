import { LeaseError } from '../contract/errors.ts'
import type { Lease } from '../contract/lease.ts'
import { LAST_REQUEST, LONGEST_TRY } from '../contract/time.ts'
import { Acquisition } from '../core/acquisition.ts'
import type { Host } from '../core/host.ts'
import type { AcquireTerms } from '../core/options.ts'
import { whenAborted } from '../core/signals.ts'
import { HeldSet } from './held-set.ts'

/** All names are held. */
export interface Gathered {
  readonly set: HeldSet
  /** The handles, by name. */
  readonly handles: ReadonlyMap<string, Lease>
}

/**
 * Acquires several names for one call. While it waits for a name it holds only names before it in the one order. If one
 * of those is lost, it releases all and begins anew.
 */
export class Gathering {
  readonly #host: Host
  readonly #ordered: readonly string[]
  readonly #terms: AcquireTerms
  readonly #started: number
  #round: Round

  constructor(host: Host, ordered: readonly string[], terms: AcquireTerms) {
    this.#host = host
    this.#ordered = ordered
    this.#terms = terms
    this.#started = host.clock.now()
    this.#round = new Round(host, ordered, terms)
  }

  /** Resolves to a `BUSY` if one of the names was busy for too long. */
  async run(): Promise<Gathered | LeaseError> {
    const stop = this.#host.signals.onAbort(this.#terms.signal, reason => this.#round.set.abort(reason))
    try {
      await this.#tryAll()
      for (;;) {
        const round = this.#round
        try {
          const busy = await round.acquireRest(this.#giveUpAt)
          if (!busy) {
            round.set.signal.throwIfAborted() // in this turn
            return round
          }
          void round.set.release() // in the background, as after every call that ends without a lease
          return this.#timeout(busy)
        } catch (error) {
          const loss = round.set.loss
          if (!loss || error !== loss) throw error
          void round.set.release() // after MAX_HOLD it is still held
          if (this.#host.clock.now() >= this.#giveUpAt) return this.#lostTooLate(loss)
        }
        this.#beginAnew()
      }
    } catch (error) {
      void this.#round.set.release()
      throw error
    } finally {
      stop()
    }
  }

  get #giveUpAt(): number {
    return this.#started + this.#terms.wait
  }

  /**
   * One request for each name, all in one batch. A call that does not wait skips this: two such calls at the same moment
   * could each get a part, and both give up. In order, the one that is ahead gets all. A call skips it too if its wait is
   * shorter than a request to a store that does not answer.
   */
  async #tryAll(): Promise<void> {
    if (this.#ordered.length === 1 || this.#terms.wait < LONGEST_TRY) return
    try {
      await this.#round.tryAll()
    } catch (error) {
      const loss = this.#round.set.loss
      if (!loss || error !== loss) throw error
      void this.#round.set.release()
      this.#beginAnew()
    }
  }

  #beginAnew(): void {
    const { signal } = this.#terms
    this.#round = new Round(this.#host, this.#ordered, this.#terms)
    if (signal?.aborted) this.#round.set.abort(signal.reason)
  }

  #timeout(busy: Acquisition): LeaseError {
    const error = busy.timeout()
    if (this.#ordered.length === 1) return error
    const { leaseName, holder } = error
    const message = `${this.#failed()}: ${JSON.stringify(leaseName)} is ${busy.nameState}`
    return new LeaseError('BUSY', message, { leaseName, holder, waited: this.#waited })
  }

  #lostTooLate(loss: LeaseError): LeaseError {
    const message = `${this.#failed()}: ${loss.message} while others were awaited`
    return new LeaseError('BUSY', message, { leaseName: loss.leaseName, waited: this.#waited, cause: loss })
  }

  /** Milliseconds since the call. */
  get #waited(): number {
    return Math.round(this.#host.clock.now() - this.#started)
  }

  #failed(): string {
    const all = `the ${this.#ordered.length} leases were not acquired`
    return this.#terms.wait > 0 ? `${all} within ${this.#waited} ms` : `${all} together`
  }
}

/** One attempt to hold all names. */
class Round implements Gathered {
  readonly set: HeldSet = new HeldSet()
  /** The handles. This reference keeps a lease from counting as dropped while another one is awaited. */
  readonly handles: Map<string, Lease> = new Map()
  readonly #host: Host
  readonly #ordered: readonly string[]
  readonly #terms: AcquireTerms

  constructor(host: Host, ordered: readonly string[], terms: AcquireTerms) {
    this.#host = host
    this.#ordered = ordered
    this.#terms = terms
  }

  /** Keeps the leases on the names before the first busy one. Rejects with an error that a wait cannot fix. */
  async tryAll(): Promise<void> {
    const { signal } = this.#terms // not the signal of the set: a try ends soon, and needs no listener
    const outcomes = await Promise.allSettled(this.#ordered.map(name => this.#acquire(name, 0, signal)))
    for (const outcome of outcomes)
      if (outcome.status === 'rejected' && !isPassing(outcome.reason)) throw outcome.reason
    const missing = this.#ordered.findIndex(name => !this.handles.has(name))
    if (missing < 0) return
    for (const name of this.#ordered.slice(missing)) {
      if (this.handles.delete(name)) this.set.releaseOne(name)
    }
  }

  /** Acquires in order what is missing. Resolves to the acquisition of a name that was busy until `giveUpAt`. */
  async acquireRest(giveUpAt: number): Promise<Acquisition | undefined> {
    const { clock } = this.#host
    let hasWaited = false
    for (const name of this.#ordered) {
      if (this.handles.has(name)) continue
      // One request is always sent: a name that is free is acquired even if the time is over.
      const wait = this.#terms.wait > 0 ? Math.max(giveUpAt - clock.now(), 1) : 0
      const busy = await this.#acquire(name, wait, this.set.signal)
      if (busy) return busy
      hasWaited = true
    }
    if (this.#terms.heartbeat === false)
      await this.#endRenewals(hasWaited ? Math.max(giveUpAt - clock.now(), LAST_REQUEST) : 0)
    this.set.limit(this.#terms.maxHold)
    return undefined
  }

  async #acquire(name: string, wait: number, signal: AbortSignal | undefined): Promise<Acquisition | undefined> {
    const { heartbeat } = this.#terms
    const terms = {
      ...this.#terms,
      kind: 'set',
      wait,
      signal,
      // Names that are held while others are awaited are renewed. A fixed term counts from the last grant.
      heartbeat: name === this.#ordered.at(-1) ? heartbeat : heartbeat || true,
      maxHold: undefined,
    } as const
    const held = await this.#host.calls.hold(name, terms, each => each)
    if (held instanceof Acquisition) return held
    this.handles.set(name, held.handle)
    this.set.add(held)
    return undefined
  }

  /**
   * Ends the renewals for a fixed term, which begins when all names are held. If the store does not answer within `limit`
   * ms, the term is shorter, as `remaining` says.
   */
  async #endRenewals(limit: number): Promise<void> {
    const leases = [...this.handles.values()].filter(({ name }) => name !== this.#ordered.at(-1))
    for (const lease of leases) lease.stopRenewing()
    if (limit === 0) return
    const { promise: over, resolve: end } = Promise.withResolvers<void>()
    const stopTimer = Number.isFinite(limit) ? this.#host.clock.after(limit, end) : undefined
    whenAborted(this.set.signal, end)
    await Promise.race([Promise.allSettled(leases.map(lease => lease.extend())), over])
    stopTimer?.()
  }
}

/** May the request succeed if it is repeated? */
function isPassing(error: unknown): boolean {
  return LeaseError.is(error) && error.retryable
}

import { LeaseError } from '../contract/errors.ts'
import { events } from '../contract/events.ts'
import { randomId } from '../contract/random-id.ts'
import { Cancel, request } from '../contract/request.ts'
import type { Claim } from '../contract/store.ts'
import { surround } from '../contract/surrounding.ts'
import { LONGEST_DELAY } from '../contract/timers.ts'
import { type Acquired, Acquisition } from './acquisition.ts'
import type { Closing } from './closing.ts'
import type { Core } from './core.ts'
import type { Family } from './family.ts'
import { HeldLease } from './held-lease.ts'
import type { AcquireTerms } from './options.ts'
import type { Renewer } from './renewer.ts'
import type { Signals } from './signals.ts'
import { hasTickets, Tickets } from './tickets.ts'
import { withdraw } from './withdraw.ts'
import type { Holding, NotAcquired, Tried, Work } from './work.ts'

/** The calls of one `Locks`, and the work that they run. A call ends when its signal aborts, and at `close()`. */
export class Calls {
  readonly #core: Core
  readonly #closing: Closing
  readonly #family: Family
  readonly #signals: Signals

  constructor(core: Core, closing: Closing, family: Family, signals: Signals) {
    this.#core = core
    this.#closing = closing
    this.#family = family
    this.#signals = signals
  }

  /** Runs `ask` until the signal aborts or the locks are closed. Throws `CLOSED`. */
  async ask(signal: AbortSignal | undefined, ask: (cancel: Cancel) => Promise<void>): Promise<void> {
    this.#closing.assertOpen()
    const cancel = new Cancel()
    const stop = this.#signals.onAbort(signal, reason => cancel.cancel(reason))
    const acquiring = ask(cancel)
    const call = this.#closing.calls.add({ cancel, acquiring })
    try {
      await acquiring
    } finally {
      stop()
      this.#closing.endCall(call)
    }
  }

  /**
   * Acquires the lease on one name, under a claim of its own. Resolves to what `resultOf` makes of the lease, or of the
   * acquisition, which has the error, if it was not acquired within `wait`. Otherwise it rejects as `acquire`.
   */
  async hold<Result>(
    name: string,
    terms: AcquireTerms,
    resultOf: (held: HeldLease | Acquisition) => Result,
  ): Promise<Result> {
    const { ttl, note, owner, limit, units } = terms
    const claim: Claim = { name, id: randomId(), owner, ttl, note, queue: terms.wait > 0, limit, units }
    const { id } = claim
    if (events.acquire_began.hasSubscribers) events.acquire_began.publish({ id, name, owner, ttl, kind: terms.kind })
    const cancel = new Cancel()
    const { signal } = this.#closing
    if (signal.aborted) cancel.cancel(signal.reason) // a listener may have aborted it
    const stop = this.#signals.onAbort(terms.signal, reason => cancel.cancel(reason))
    const core = this.#core
    const tickets = limit !== undefined && limit > 1 && hasTickets(core.store) && new Tickets(core, claim)
    const acquisition = new Acquisition(tickets ? { ...core, store: tickets } : core, claim, terms, cancel)
    let renewer: Renewer | undefined
    const acquireWithThread = async (): Promise<Acquired | undefined> => {
      renewer = await request(core.clock, LONGEST_DELAY, () => this.#family.startRenewer(), { cancel })
      return acquisition.run()
    }
    const acquiring = terms.heartbeat === 'thread' ? acquireWithThread() : acquisition.run()
    const call = this.#closing.calls.add({ cancel, acquiring, acquisition })
    let held: HeldLease | Acquisition = acquisition
    try {
      const acquired = await acquiring
      if (acquired) {
        const granted = tickets ? tickets.settle() : claim
        const { sent, requests } = tickets || acquired
        const { unsettled, waited } = acquired
        // In this turn of the event loop: `close()` waits for what is in the background now.
        if (cancel.cancelled) core.inBackground(withdraw(core, granted, unsettled))
        cancel.throwIfCancelled()
        const grant = tickets ? { ...acquired, sent } : acquired
        const lease = renewer?.hold(core, granted, grant, terms) ?? new HeldLease(core, granted, grant, terms)
        held = lease
        // Last, because a listener may release the lease or close these locks.
        if (events.lease_acquired.hasSubscribers)
          events.lease_acquired.publish({ id, lease: lease.handle, waited, requests })
      } else if (events.not_acquired.hasSubscribers)
        // The event has the error that `acquire` throws.
        events.not_acquired.publish({ id, name, owner, error: acquisition.timeout() })
    } catch (error) {
      if (events.not_acquired.hasSubscribers) events.not_acquired.publish({ id, name, owner, error })
      throw error
    } finally {
      stop()
      this.#closing.endCall(call)
    }
    return resultOf(held)
  }

  /** Runs `work`, then releases. Settles as `using` promises. `signal` is the caller's. */
  async run<Handle, Result>(
    held: Holding<Handle>,
    work: Work<Handle, Result>, // JavaScript may return a plain value
    signal: AbortSignal | undefined,
  ): Promise<Result> {
    const stop = this.#signals.onAbort(signal, reason => held.abort(reason))
    this.#closing.beginBody()
    let lost: LeaseError | undefined
    let result: Result
    try {
      result = await surround(held.handle, work)
    } catch (error) {
      const { aborted, reason } = held.signal
      throw aborted && isAbort(error, reason) ? reason : error
    } finally {
      stop()
      const ending = held.end()
      this.#closing.endBody()
      lost = await ending
    }
    if (lost) throw new LeaseError(lost.code, lost.message, { leaseName: lost.leaseName, cause: lost, result })
    return result
  }

  /** Runs `work` unless the name was busy. */
  async tryRun<Handle, Result>(
    held: Holding<Handle> | NotAcquired,
    work: Work<Handle, Result>,
    signal: AbortSignal | undefined,
  ): Promise<Tried<Result>> {
    if ('handle' in held) return { ran: true, result: await this.run(held, work, signal) }
    return { ran: false, why: 'held', holder: held.timeout().holder }
  }
}

/** Did the work fail because it was aborted? Many functions throw an AbortError of their own instead of the reason. */
function isAbort(error: unknown, reason: unknown): boolean {
  return error === reason || (error instanceof Error && (error.name === 'AbortError' || error.cause === reason))
}

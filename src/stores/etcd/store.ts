import { setTimeout as sleep } from 'node:timers/promises'
import type {
  BreakParameters,
  Busy,
  Claim,
  ClaimKey,
  Grant,
  Guarantees,
  LeaseRecord,
  Query,
  Store,
  Wake,
} from '../../contract/store.ts'
import { type Clock, LONGEST_TRY, requestLimit } from '../../contract/time.ts'
import { closed } from '../wire/failure.ts'
import { Admission, Admissions } from './admission.ts'
import { Changes } from './changes.ts'
import { crowded } from './failure.ts'
import type { Gateway } from './gateway.ts'
import { Grants } from './grants.ts'
import { guarantees } from './guarantees.ts'
import { records } from './inspection.ts'
import { Keys, secondsOf } from './keys.ts'
import { isPooled } from './lease-pool.ts'
import { Leases } from './leases.ts'
import type { Parts } from './parts.ts'
import { idOf, secondsAsked, slotsOf } from './record.ts'
import { Recovery } from './recovery.ts'
import { Releases } from './release.ts'
import { granted, Requests, vanished } from './requests.ts'
import type { Situation } from './txn.ts'
import { asAsker, decide, heldBy, type View } from './view.ts'
import { refused, Waiting } from './waiting.ts'

/** The answer to a claim that queues and was not sent yet, because many claims of this process ask for the same name. */
const notYet: Busy = { held: false, retryAfter: 1 }

/** Milliseconds for which a claim waits for others of this process. A claim that asks once has less time. */
function patienceOf({ ttl, queue }: Claim): number {
  return (queue ? requestLimit(ttl) : Math.min(requestLimit(ttl), LONGEST_TRY)) / 2
}

/**
 * The number of claims that join queues at once. They leave half of the connections to other requests, such as renewals.
 */
const JOINS = 16

/**
 * Milliseconds before a claim that lost to others tries again, times the number of its failures, up to the second value.
 */
const [PAUSE, MOST_PAUSES] = [2, 10]

/**
 * A claim holds while its key `held` exists. That key ends with its etcd lease. A claim that waits creates a key in the
 * queue. Each process reads the keys of a name and decides by its rules. The decision is written only if no key was created
 * meanwhile.
 */
export class EtcdStore implements Store {
  readonly kind = 'etcd'
  readonly guarantees: Guarantees = guarantees
  readonly #parts: Parts
  readonly #changes: Changes
  readonly #grants: Grants
  readonly #recovery: Recovery
  readonly #releases: Releases
  readonly #waiting: Waiting
  readonly #joins = new Admission(JOINS)
  /** The claims of this process that may share a name. Each needs its own transaction, and so its own token. */
  readonly #sharers = new Admissions(1)

  constructor(gateway: Gateway, prefix: string, clock: Clock) {
    const keys = new Keys(prefix)
    const requests = new Requests(gateway, keys)
    const parts = { gateway, keys, requests, leases: new Leases(gateway, requests, clock), clock }
    this.#parts = parts
    this.#changes = new Changes(parts)
    this.#grants = new Grants(parts)
    this.#recovery = new Recovery(parts, this.#changes)
    this.#releases = new Releases(parts, this.#grants)
    this.#waiting = new Waiting(parts, this.#grants, this.#recovery)
  }

  async acquire(claim: Claim, signal: AbortSignal): Promise<Grant | Busy> {
    this.#assertWanted(signal)
    const answer = await this.#waiting.askAgain(claim, signal)
    if (answer) return answer
    // An attempt that fails costs no write.
    const view = claim.queue ? undefined : await this.#parts.requests.view(claim.name, requestLimit(claim.ttl))
    signal.throwIfAborted()
    return this.#enter(claim, signal, view)
  }

  async renew(claim: Claim, signal: AbortSignal): Promise<Grant | undefined> {
    this.#assertWanted(signal)
    const { name, id, ttl } = claim
    const [seconds, limit, beatAt] = [secondsOf(ttl), requestLimit(ttl), this.#parts.clock.now()]
    const known = this.#parts.leases.known(id)
    const mayStay = known !== undefined && known.seconds === seconds && !known.mayMove
    const [beat, { found, term }] = await Promise.all([
      mayStay ? this.#parts.requests.keepAlive(known.lease, limit) : undefined,
      this.#parts.requests.look(this.#parts.keys.held(name, id), limit),
    ])
    if (!found || idOf(found) !== id) return undefined
    signal.throwIfAborted()
    const { create_revision: token } = found
    if (beat && found.lease === known?.lease) {
      if (known?.loan) known.loan.pooled = { ...known.loan.pooled, beat, beatAt }
      return granted(token, beat, term, slotsOf(found))
    }
    // The claim was acquired through another store, such as that of the main thread.
    if (!known && isPooled(found.lease) && secondsAsked(found) === seconds) {
      const current = await this.#parts.requests.keepAlive(found.lease, limit)
      this.#parts.leases.know(id, { lease: found.lease, seconds })
      return granted(token, current, term, slotsOf(found))
    }
    return this.#changes.ttl(claim, found)
  }

  async annotate(claim: Claim, signal: AbortSignal): Promise<boolean> {
    this.#assertWanted(signal)
    return this.#changes.note(claim, signal)
  }

  async release({ name, id }: ClaimKey, signal: AbortSignal): Promise<'released' | 'gone'> {
    this.#assertWanted(signal)
    this.#joins.forget(id)
    this.#sharers.forget(name, id)
    return this.#releases.release({ name, id }, this.#waiting.leave(name, id), signal)
  }

  async watch({ name, id }: ClaimKey, wake: Wake, signal: AbortSignal): Promise<void> {
    this.#assertWanted(signal)
    await this.#waiting.watch(name, id, wake, signal)
  }

  async *inspect(query: Query, signal: AbortSignal): AsyncIterable<LeaseRecord> {
    this.#assertWanted(signal)
    yield* records(this.#parts.gateway, this.#parts.keys, query, lease => this.#parts.leases.remaining(lease), signal)
  }

  async break(name: string, parameters: BreakParameters, signal: AbortSignal): Promise<bigint | undefined> {
    this.#assertWanted(signal)
    return this.#releases.break(name, parameters, signal)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#waiting.end()
    if (!this.#parts.gateway.isClosed) await this.#parts.leases.end()
    this.#parts.gateway.close()
  }

  /** Acquires the name or joins the queue. `view`: what was just read of the name. */
  async #enter(claim: Claim, signal: AbortSignal, view?: View): Promise<Grant | Busy> {
    const { id, ttl, queue, limit = 1 } = claim
    if (view && !heldBy(id, view)) {
      const decision = decide(asAsker(claim), view, this.#parts.clock.now())
      if (!decision.held) return this.#waiting.busy(claim, view, decision)
    }
    const settled = await this.#recovery.settle(claim)
    if (settled) return settled
    signal.throwIfAborted()
    if (!queue || !this.#waiting.isBusy(claim)) {
      const answer = limit > 1 ? await this.#share(claim, signal) : await this.#takeAlone(claim, signal)
      if (answer) return answer
      signal.throwIfAborted()
    }
    const joined = await this.#joins.run(id, requestLimit(ttl) / 2, signal, async () => {
      signal.throwIfAborted()
      return this.#waiting.join(claim, signal)
    })
    return joined ? (joined.answer ?? this.#enter(claim, signal)) : notYet
  }

  /** Resolves to `undefined` if the claim must join the queue. */
  async #takeAlone(claim: Claim, signal: AbortSignal): Promise<Grant | Busy | undefined> {
    const taken = await this.#grants.takeUnused(claim, signal)
    if (taken && 'held' in taken) return taken
    const settled = await this.#recovery.settle(claim)
    if (settled || claim.queue) return settled
    signal.throwIfAborted()
    return this.#takeBeside(claim, undefined, signal)
  }

  /** Lets one claim of this process try after the other. Resolves like `#takeAlone`. */
  async #share(claim: Claim, signal: AbortSignal): Promise<Grant | Busy | undefined> {
    const { name, id, queue } = claim
    const entered = await this.#sharers.run(name, id, patienceOf(claim), signal, async () => {
      const taken = await this.#grants.takeUnused(claim, signal)
      if (taken && 'held' in taken) return taken
      return (await this.#recovery.settle(claim)) ?? this.#takeBeside(claim, taken, signal)
    })
    if (entered) return entered.answer
    if (queue) return notYet
    this.#sharers.forget(name, id) // it does not ask again
    throw crowded(name)
  }

  /** Acquires a name that has other holders, if the rules allow that. Resolves like `#takeAlone`. */
  async #takeBeside(
    claim: Claim,
    first: Situation | undefined,
    signal: AbortSignal,
  ): Promise<Grant | Busy | undefined> {
    const { name, id, ttl, queue } = claim
    const started = this.#parts.clock.now()
    let situation = first
    for (let failures = 0; ; failures += 1) {
      const view = situation?.view ?? (await this.#parts.requests.view(name, requestLimit(ttl)))
      signal.throwIfAborted()
      if (situation?.isGone) return refused
      if (heldBy(id, view)) return (await this.#recovery.recover(claim)) ?? Promise.reject(vanished())
      const decision = decide(asAsker(claim), view, this.#parts.clock.now())
      if (!decision.held) return queue ? undefined : this.#waiting.busy(claim, view, decision)
      if (this.#parts.clock.now() > started + patienceOf(claim)) return queue ? notYet : Promise.reject(crowded(name))
      const position = view.waiters.find(found => idOf(found) === id)?.create_revision
      const taken = await this.#grants.take(claim, decision, view, position, signal)
      if (taken && 'held' in taken) return taken
      const settled = await this.#recovery.settle(claim)
      if (settled) return settled
      situation = taken
      await sleep(PAUSE * Math.min(failures, MOST_PAUSES) * Math.random())
    }
  }

  #assertWanted(signal: AbortSignal): void {
    if (this.#parts.gateway.isClosed) throw closed()
    signal.throwIfAborted()
  }
}

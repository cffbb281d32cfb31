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
import { type Clock, LONGEST_REQUEST, requestLimit } from '../../contract/time.ts'
import { closed } from '../shared/failure.ts'
import { Admission } from './admission.ts'
import { Changes } from './changes.ts'
import type { Gateway } from './gateway.ts'
import { guarantees } from './guarantees.ts'
import { records } from './inspection.ts'
import { Keys, leaseOf, secondsOf } from './keys.ts'
import { isPooled } from './lease-pool.ts'
import { Leases, orMissing } from './leases.ts'
import type { KeyValue } from './messages.ts'
import { idOf, secondsAsked } from './record.ts'
import { Releases } from './release.ts'
import { granted, Requests, termOf, vanished } from './requests.ts'
import { before, join, situation, situationOf } from './txn.ts'
import { Uncontended } from './uncontended.ts'
import { Waiting } from './waiting.ts'

const refused: Busy = { held: false, retryAfter: LONGEST_REQUEST }

/** Many claims of this process are about to join, so this one was not sent yet. */
const notYet: Busy = { held: false, retryAfter: 1 }

/**
 * The claim that created the key `held` holds the name, for as long as the etcd lease of that key lasts. A claim that
 * waits creates a key in the queue, on its own lease, and takes the name in the order of these keys.
 */
export class EtcdStore implements Store {
  readonly kind = 'etcd'
  readonly guarantees: Guarantees = guarantees
  readonly #gateway: Gateway
  readonly #keys: Keys
  readonly #requests: Requests
  readonly #leases: Leases
  readonly #uncontended: Uncontended
  readonly #releases: Releases
  readonly #changes: Changes
  readonly #clock: Clock
  readonly #waiting: Waiting
  readonly #admission = new Admission()

  /** `clock` must count the time for which the machine sleeps: the leases of waiters age by it. */
  constructor(gateway: Gateway, prefix: string, clock: Clock) {
    this.#gateway = gateway
    this.#clock = clock
    this.#keys = new Keys(prefix)
    this.#requests = new Requests(gateway, this.#keys)
    this.#leases = new Leases(gateway, this.#requests, clock)
    const [keys, requests, leases] = [this.#keys, this.#requests, this.#leases]
    this.#uncontended = new Uncontended(gateway, keys, requests, leases, clock)
    this.#releases = new Releases({ gateway, keys, requests, leases, uncontended: this.#uncontended })
    this.#changes = new Changes(gateway, keys, requests, leases)
    this.#waiting = new Waiting({ gateway, keys, requests, leases, clock })
  }

  async acquire(claim: Claim, signal: AbortSignal): Promise<Grant | Busy> {
    this.#assertWanted(signal)
    const answer = await this.#waiting.askAgain(claim, signal)
    if (answer) return answer
    if (!claim.queue) {
      const busy = await this.#lookFirst(claim)
      signal.throwIfAborted()
      if (busy) return busy
    }
    return this.#enter(claim, signal)
  }

  async renew(claim: Claim, signal: AbortSignal): Promise<Grant | undefined> {
    this.#assertWanted(signal)
    const { name, id, ttl } = claim
    const [seconds, limit, beatAt] = [secondsOf(ttl), requestLimit(ttl), this.#clock.now()]
    const known = this.#leases.known(id)
    const lease = known?.lease ?? leaseOf(id, seconds)
    const mayStay = known === undefined || (known.seconds === seconds && !known.mayMove)
    const [beat, { found, term }] = await Promise.all([
      mayStay ? this.#requests.keepAlive(lease, limit) : undefined,
      this.#requests.look(this.#keys.held(name), limit),
    ])
    if (!found || idOf(found) !== id) return undefined
    signal.throwIfAborted()
    if (beat && found.lease === lease) {
      if (known?.loan) known.loan.pooled = { ...known.loan.pooled, beat, beatAt }
      return granted(found.create_revision, beat, term)
    }
    // The claim was acquired through another store, such as that of the main thread.
    if (!known && isPooled(found.lease) && secondsAsked(found) === seconds) {
      const current = await this.#requests.keepAlive(found.lease, limit)
      this.#leases.know(id, { lease: found.lease, seconds })
      return granted(found.create_revision, current, term)
    }
    return this.#changes.ttl(claim, found)
  }

  async annotate(claim: Claim, signal: AbortSignal): Promise<boolean> {
    this.#assertWanted(signal)
    return this.#changes.note(claim, signal)
  }

  async release({ name, id }: ClaimKey, signal: AbortSignal): Promise<'released' | 'gone'> {
    this.#assertWanted(signal)
    this.#admission.forget(id)
    this.#waiting.leave(name, id)
    return this.#releases.release({ name, id }, signal)
  }

  async watch({ name, id }: ClaimKey, wake: Wake, signal: AbortSignal): Promise<void> {
    this.#assertWanted(signal)
    await this.#waiting.watch(name, id, wake, signal)
  }

  async *inspect(query: Query, signal: AbortSignal): AsyncIterable<LeaseRecord> {
    this.#assertWanted(signal)
    yield* records(this.#gateway, this.#keys, query, lease => this.#leases.remaining(lease), signal)
  }

  async break(name: string, { token }: BreakParameters, signal: AbortSignal): Promise<bigint | undefined> {
    this.#assertWanted(signal)
    return this.#releases.break(name, token, signal)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#waiting.end()
    if (!this.#gateway.isClosed) await this.#leases.end()
    this.#gateway.close()
  }

  /** Answers a busy claim from a read alone, so that a try that loses costs no write. */
  async #lookFirst(claim: Claim): Promise<Busy | undefined> {
    const { held, waiting } = await this.#requests.survey(claim.name, requestLimit(claim.ttl))
    if (held && idOf(held) === claim.id) return undefined // `#enter` recovers it
    return held || waiting > 0 ? this.#waiting.busy(claim, held, waiting) : undefined
  }

  async #enter(claim: Claim, signal: AbortSignal): Promise<Grant | Busy> {
    const { name, id, ttl, queue } = claim
    const limit = requestLimit(ttl)
    const settled = await this.#settle(claim)
    if (settled) return settled
    signal.throwIfAborted()
    // If others of this process wait, the name is most likely not free.
    const mayTake = !queue || !this.#waiting.knows(name)
    const taken = mayTake && ((await this.#uncontended.take(claim, signal)) ?? (await this.#settle(claim)))
    if (taken) return taken
    signal.throwIfAborted()
    if (!queue) {
      const { held, waiting } = await this.#requests.survey(name, limit)
      if (!held || idOf(held) !== id) return held || waiting > 0 ? this.#waiting.busy(claim, held, waiting) : refused
      const recovered = await this.#recover(claim)
      if (recovered) return recovered
      throw vanished()
    }
    const joined = await this.#admission.run(id, limit / 2, signal, () => this.#join(claim, signal))
    return joined ? (joined.answer ?? this.#enter(claim, signal)) : notYet
  }

  /** Joins the queue. `undefined`: the claim has lost its position already. */
  async #join(claim: Claim, signal: AbortSignal): Promise<Grant | Busy | undefined> {
    signal.throwIfAborted()
    const { name, id, ttl } = claim
    const limit = requestLimit(ttl)
    const lease = leaseOf(id, secondsOf(ttl))
    const beatAt = this.#clock.now()
    this.#leases.know(id, { lease, seconds: secondsOf(ttl) })
    const beat = await this.#leases.grant(lease, ttl, limit)
    signal.throwIfAborted()
    const {
      header,
      succeeded,
      responses = [],
    } = await this.#gateway.txn(join(this.#keys, claim, lease, this.#gateway.roundTrip), limit)
    const [, held, queued] = responses.map(({ response_range = {} }) => response_range)
    const holder = held?.kvs?.[0]
    if (holder && idOf(holder) === id) {
      // It holds by another lease already, and must not wait behind itself.
      this.#leases.drop(id, lease)
      return this.#again(claim, holder, termOf(header), this.#keys.place(name, id))
    }
    if (succeeded) {
      const found = { held: holder, ahead: Number(queued?.count ?? 1) - 1 }
      return this.#waiting.join(claim, { lease, revision: header.revision, beat, beatAt }, found, signal)
    }
    const answer = await this.#gateway.txn({ success: situation(this.#keys, claim) }, limit)
    const found = situationOf(answer)
    if (found.held && !found.isGone && idOf(found.held) === id) {
      if (found.held.lease !== lease) this.#leases.drop(id, lease)
      return this.#again(claim, found.held, termOf(answer.header), found.place?.key)
    }
    if (found.isGone) {
      this.#leases.drop(id, lease)
      return refused
    }
    // It is in the queue already, by a request whose answer was lost or through another store. Others may be behind it.
    const { place } = found
    if (!place) throw vanished()
    const { kvs = [] } = await this.#gateway.range(before(this.#keys, name, place.create_revision), limit)
    const known = { lease, revision: place.create_revision, beat, beatAt }
    return this.#waiting.join(claim, known, { held: found.held, ahead: kvs.length }, signal)
  }

  /** Settles an unanswered request of the claim on a pooled lease: it was granted, or it can never be. */
  async #settle(claim: Claim): Promise<Grant | undefined> {
    const known = this.#leases.known(claim.id)
    if (!known?.loan) return undefined
    let held = await this.#recover(claim)
    // A copy of the request may have been granted after the key was read.
    if (!held && known.loan.revision !== undefined) held = await this.#recover(claim)
    if (held) return held
    // It may still arrive, but has no effect once its lease is revoked.
    known.loan.isOver = true
    await this.#leases.revoke(known.lease).catch(orMissing)
    this.#leases.forget(claim.id)
    return undefined
  }

  async #recover(claim: Claim): Promise<Grant | undefined> {
    const { found, term } = await this.#requests.look(this.#keys.held(claim.name), requestLimit(claim.ttl))
    return found && idOf(found) === claim.id ? this.#again(claim, found, term) : undefined
  }

  /** A holder asks again. That never shortens its lease. */
  async #again(claim: Claim, found: KeyValue, confirmed: number, place?: string): Promise<Grant> {
    const { id, ttl } = claim
    if (place) await this.#gateway.txn({ success: [{ request_delete_range: { key: place } }] })
    const { lease = '0', create_revision: revision } = found
    const beatAt = this.#clock.now()
    const beat = await this.#requests.keepAlive(lease, requestLimit(ttl))
    if (beat.ttl < ttl && beat.ttl > 0) return this.#changes.ttl(claim, found)
    const known = this.#leases.known(id)
    if (known?.lease === lease && known.loan?.isOver === false) {
      known.loan.pooled = { ...known.loan.pooled, beat, beatAt }
      known.loan.revision = revision
    } else this.#leases.know(id, { lease, seconds: secondsOf(beat.ttl) })
    return granted(revision, beat, confirmed)
  }

  #assertWanted(signal: AbortSignal): void {
    if (this.#gateway.isClosed) throw closed()
    signal.throwIfAborted()
  }
}

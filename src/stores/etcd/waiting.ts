import type { Busy, Claim, Grant, Wake } from '../../contract/store.ts'
import { LONGEST_REQUEST, requestLimit } from '../../contract/time.ts'
import { positionLifetime } from '../rules/name.ts'
import { isLeaseMissing } from './failure.ts'
import type { Grants } from './grants.ts'
import { SWEEP } from './guarantees.ts'
import type { KeyValue, TxnAnswer } from './messages.ts'
import type { Parts } from './parts.ts'
import { Queue, type Waiter } from './queue.ts'
import { encodeWaiter, holderOf, idOf, isPassed, positionSeconds } from './record.ts'
import type { Recovery } from './recovery.ts'
import { vanished } from './requests.ts'
import { adopt, countAgain, join, keysIn, MOST_COMPARED, situationOf } from './txn.ts'
import { asAsker, decide, heldBy, type Refused, type View, viewOf, wholeOf } from './view.ts'

/** Milliseconds after which a claim asks again if no event is expected. */
const POLL = 1_000

/** Behind more waiters than this, a new one asks again only to keep its position, not when one of them may lapse. */
const MOST_JUDGED = 10

/** The answer to a claim that was withdrawn. */
export const refused: Busy = { held: false, retryAfter: LONGEST_REQUEST }

/** The claims of this process that wait in a queue, until they hold or lose their positions. */
export class Waiting {
  readonly #parts: Parts
  readonly #grants: Grants
  readonly #recovery: Recovery
  /** The queues in which a claim of this process waits, by name. */
  readonly #queues = new Map<string, Queue>()

  constructor(parts: Parts, grants: Grants, recovery: Recovery) {
    this.#parts = parts
    this.#grants = grants
    this.#recovery = recovery
  }

  /** Is it likely that the claim must wait, because others of this process wait or a watch reported others? */
  isBusy({ name, limit = 1 }: Claim): boolean {
    return this.#queues.get(name)?.isBusy(limit) === true
  }

  /** The claim was withdrawn. Returns what is known of its position. */
  leave(name: string, id: string): Waiter | undefined {
    return this.#queues.get(name)?.leave(id)
  }

  watch(name: string, id: string, wake: Wake, signal: AbortSignal): Promise<void> {
    return this.#queue(name).watch(id, wake, signal)
  }

  end(): void {
    for (const queue of this.#queues.values()) queue.end()
    this.#queues.clear()
  }

  /** Joins the queue. Resolves to `undefined` if the claim has already lost its position. */
  join(claim: Claim, signal: AbortSignal): Promise<Grant | Busy | undefined> {
    const queue = this.#queue(claim.name)
    return queue.whileJoining(() => this.#join(claim, queue, signal))
  }

  async #join(claim: Claim, queue: Queue, signal: AbortSignal): Promise<Grant | Busy | undefined> {
    const { keys, gateway } = this.#parts
    const { name, id, ttl } = claim
    const limit = requestLimit(ttl)
    const { lease, answer, whole } = await this.#sendJoin(claim, queue, signal)
    const waiter = { lease, ttl, askedAt: this.#parts.clock.now(), mayHold: false }
    if (answer.succeeded) {
      signal.throwIfAborted() // nobody would remove it from the queue again
      const { header, responses = [] } = answer
      const [, holders = {}, waiters = {}] = responses.map(({ response_range }) => response_range)
      const joined = { ...waiter, revision: header.revision }
      const kvs = [...(holders.kvs ?? []), ...(waiters.kvs ?? [])]
      queue.join(id, joined, whole ? { header, kvs } : undefined)
      const ahead = Number(waiters.count ?? 1) - 1
      const own = newPosition(keys.position(name, id), header.revision, encodeWaiter(claim, this.#roundTripOf(claim)))
      const others = whole || ahead === 0 || ahead > MOST_JUDGED ? [] : queue.known.before(id)
      const read = viewOf(holders, whole ? waiters : { kvs: [...others, own] }, header.revision)
      const view = { ...read, changed: queue.known.changedIn(read, id) }
      const isComplete = whole || ahead === 0 || (others.length === ahead && Number.isFinite(view.changed))
      if (isComplete) return (await this.#proceed(claim, joined, queue, view, signal)) ?? this.#settle(claim)
      // If the claim is next, that is found out when the watch has reported everything.
      const decision = decide(asAsker(claim), view, this.#parts.clock.now())
      const retryAfter = decision.held ? positionLifetime(ttl) / 3 : decision.retryAfter
      return this.#busy(claim, view, { held: false, retryAfter, ahead: ahead - queue.known.passed }, queue)
    }
    const { isGone, position, view } = situationOf(answer)
    if (isGone) return refused
    const held = heldBy(id, view)
    if (held) return this.#recovery.recover(claim)
    // The claim is already in the queue, through a request whose answer was lost or through another store. Others may be
    // behind it.
    if (!position) throw vanished()
    if (position.lease !== lease) await gateway.txn(adopt(position.key, position.create_revision, lease), limit)
    signal.throwIfAborted()
    const joined = { ...waiter, revision: position.create_revision }
    queue.join(id, joined)
    return this.#ask(claim, joined, queue, signal)
  }

  /**
   * The position that was just made is gone. Unless the claim holds, a release has ended it, or it has lapsed: then this
   * request must not make another one.
   */
  async #settle(claim: Claim): Promise<Grant> {
    const held = (await this.#recovery.settle(claim)) ?? (await this.#recovery.recover(claim))
    return held ?? Promise.reject(vanished())
  }

  /** Resolves to `undefined` if the claim does not wait here, or no longer does. */
  async askAgain(claim: Claim, signal: AbortSignal): Promise<Grant | Busy | undefined> {
    const queue = this.#queues.get(claim.name)
    const waiter = queue?.waiters.get(claim.id)
    return queue && waiter && this.#ask(claim, waiter, queue, signal)
  }

  /** The answer for a claim that does not queue and does not get the name. */
  busy(claim: Claim, view: View, refusal: Refused): Promise<Busy> {
    return this.#busy(claim, view, refusal)
  }

  async #sendJoin(
    claim: Claim,
    queue: Queue,
    signal: AbortSignal,
  ): Promise<{ lease: string; answer: TxnAnswer; whole: boolean }> {
    const { gateway, keys } = this.#parts
    for (let isFirst = true; ; isFirst = false) {
      const lease = await queue.leases.take(positionSeconds(claim.ttl))
      signal.throwIfAborted()
      const whole = !queue.isReady
      try {
        const txn = join(keys, claim, lease, this.#roundTripOf(claim), whole)
        return { lease, answer: await gateway.txn(txn, requestLimit(claim.ttl)), whole }
      } catch (error) {
        if (!isLeaseMissing(error)) throw error
        queue.leases.forget(lease)
        if (!isFirst) throw error
      }
    }
  }

  async #ask(claim: Claim, waiter: Waiter, queue: Queue, signal: AbortSignal): Promise<Grant | Busy | undefined> {
    const { id, ttl } = claim
    waiter.askedAt = this.#parts.clock.now()
    if (waiter.mayHold) {
      const held = await this.#recovery.settle(claim)
      if (held) queue.leave(id)
      if (held) return held
      signal.throwIfAborted() // a later attempt may count on this waiter by now
      waiter.mayHold = false
    }
    let view = queue.view(id, waiter.revision)
    const own = view?.waiters.at(-1)
    const isSure = view && view.holders.length <= MOST_COMPARED
    if (view && !(own && isPassed(own)) && !(isSure && decide(asAsker(claim), view, this.#parts.clock.now()).held))
      view = (await queue.agrees(requestLimit(ttl))) ? queue.view(id, waiter.revision) : undefined
    return this.#proceed(claim, waiter, queue, view ?? (await this.#read(claim, queue)), signal)
  }

  /**
   * The waiter acquires the name if the rules grant it. Otherwise it waits. Resolves to `undefined` if it has no position,
   * or holds.
   */
  async #proceed(
    claim: Claim,
    waiter: Waiter,
    queue: Queue,
    first: View,
    signal: AbortSignal,
  ): Promise<Grant | Busy | undefined> {
    const { id } = claim
    let passed: KeyValue | undefined
    for (let view = first; ; view = await this.#read(claim, queue, passed)) {
      const position = view.waiters.find(found => idOf(found) === id)
      if (position?.create_revision !== waiter.revision) break
      // It counts before it tries: others that are faster could be granted the name each time.
      passed = isPassed(position) ? position : undefined
      if (passed) continue
      const decision = decide(asAsker(claim), view, this.#parts.clock.now())
      if (!decision.held) return this.#busy(claim, view, decision, queue)
      signal.throwIfAborted()
      waiter.mayHold = true
      const answer = await this.#grants.take(claim, decision, view, waiter.revision, signal)
      if (answer && 'held' in answer) {
        queue.leave(id)
        return answer
      }
      signal.throwIfAborted() // a later attempt may count on this waiter by now
      // An earlier copy of the request may have acquired the name. If not, the claim still waits at this position.
      if (!answer) return this.#ask(claim, waiter, queue, signal)
      waiter.mayHold = false
    }
    signal.throwIfAborted()
    queue.leave(id)
    return undefined
  }

  /** Reads all keys of the name. `passed`: the position of the claim, which counts again. */
  async #read(claim: Claim, queue: Queue, passed?: KeyValue): Promise<View> {
    const { gateway, keys, requests } = this.#parts
    const { name, ttl } = claim
    const limit = requestLimit(ttl)
    const countsAgain = async (position: KeyValue): Promise<View> => {
      const read = keysIn(await gateway.txn(countAgain(keys, name, position, this.#roundTripOf(claim)), limit))
      return wholeOf(keys, read, read.header.revision)
    }
    const view = await (passed ? countsAgain(passed) : requests.whole(name, limit))
    return { ...view, changed: queue.known.changedIn(view) }
  }

  /** `queue`: the queue, if the claim is in it. */
  async #busy({ name }: Claim, { holders }: View, refusal: Refused, queue?: Queue): Promise<Busy> {
    const [held] = holders
    const remaining = held ? await this.#parts.leases.remaining(held.lease ?? '0') : 0
    const delays = [refusal.retryAfter]
    if (held) delays.push(Math.max(remaining, SWEEP))
    // Other holders may end sooner, and positions may lapse. Nothing wakes a claim that does not queue.
    if (queue ? !queue.isReady : holders.length !== 1 || refusal.ahead > 0) delays.push(POLL)
    return {
      held: false,
      retryAfter: Math.min(...delays),
      ahead: refusal.ahead,
      listens: queue?.isReady,
      kept: queue?.isReady,
      holder: held && holderOf(name, held, Math.max(remaining, 1)),
    }
  }

  /** The round trips in ms that a waiter may need when it is woken: it may await an answer, and then takes the name. */
  #roundTripOf({ roundTrip = 2 * this.#parts.gateway.roundTrip }: Claim): number {
    return roundTrip
  }

  #queue(name: string): Queue {
    let queue = this.#queues.get(name)
    if (!queue) {
      const onEnd = (): void => {
        if (this.#queues.get(name) === made) this.#queues.delete(name)
      }
      const made = new Queue(name, this.#parts, onEnd)
      queue = made
      this.#queues.set(name, made)
    }
    return queue
  }
}

function newPosition(key: string, revision: string, value: string): KeyValue {
  return { key, value, create_revision: revision, mod_revision: revision }
}

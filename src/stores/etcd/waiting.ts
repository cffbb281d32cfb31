import type { Busy, Claim, Grant, Wake } from '../../contract/store.ts'
import { type Clock, requestLimit } from '../../contract/time.ts'
import { askAgainAfter, roundTrips } from '../shared/queue.ts'
import type { Gateway } from './gateway.ts'
import { SWEEP } from './guarantees.ts'
import type { Keys } from './keys.ts'
import { type Leases, orMissing } from './leases.ts'
import type { KeyValue } from './messages.ts'
import { isTurn, Queue, type Waiter } from './queue.ts'
import { holderOf, idOf, roundTripAt } from './record.ts'
import { granted, type KeepAlive, type Requests, termOf } from './requests.ts'
import { situation, situationOf, take } from './txn.ts'

/** Milliseconds after which a waiter without a watch asks again. */
const POLL = 1_000

export interface WaitingOptions {
  readonly gateway: Gateway
  readonly keys: Keys
  readonly requests: Requests
  readonly leases: Leases
  readonly clock: Clock
}

/** Claims of this process that wait in a queue, until they take the name or lose their position. */
export class Waiting {
  readonly #gateway: Gateway
  readonly #keys: Keys
  readonly #requests: Requests
  readonly #leases: Leases
  readonly #clock: Clock
  /** By name, the queues in which a claim of this process waits. */
  readonly #queues = new Map<string, Queue>()

  constructor({ gateway, keys, requests, leases, clock }: WaitingOptions) {
    this.#gateway = gateway
    this.#keys = keys
    this.#requests = requests
    this.#leases = leases
    this.#clock = clock
  }

  /** Does a claim of this process wait for the name? */
  knows(name: string): boolean {
    return this.#queues.has(name)
  }

  /** The claim holds or was withdrawn. */
  leave(name: string, id: string): void {
    this.#queues.get(name)?.leave(id)
  }

  watch(name: string, id: string, wake: Wake, signal: AbortSignal): Promise<void> {
    return this.#queue(name).watch(id, wake, signal)
  }

  end(): void {
    for (const queue of this.#queues.values()) queue.end()
    this.#queues.clear()
  }

  /** The claim is in the queue now. `undefined`: it has lost its position already. */
  async join(
    claim: Claim,
    known: Pick<Waiter, 'lease' | 'revision' | 'beat' | 'beatAt'>,
    { held, ahead }: { held: KeyValue | undefined; ahead: number },
    signal: AbortSignal,
  ): Promise<Grant | Busy | undefined> {
    signal.throwIfAborted() // nobody would take it out of the queue again
    const queue = this.#queue(claim.name)
    const now = this.#clock.now()
    const waiter: Waiter = { ...known, ahead, roundTrips: 0, freeSince: held ? undefined : now, askedAt: now }
    queue.join(claim.id, waiter)
    return isTurn(waiter, now) ? this.#take(claim, waiter, signal) : this.busy(claim, held, ahead, waiter, queue)
  }

  /** `undefined`: the claim does not wait here, or no longer. */
  async askAgain(claim: Claim, signal: AbortSignal): Promise<Grant | Busy | undefined> {
    const waiter = this.#queues.get(claim.name)?.waiters.get(claim.id)
    return waiter && this.#take(claim, waiter, signal)
  }

  async #take(claim: Claim, waiter: Waiter, signal: AbortSignal): Promise<Grant | Busy | undefined> {
    const { name, id, ttl } = claim
    const queue = this.#queue(name)
    const limit = requestLimit(ttl)
    const { lease, revision } = waiter
    const asked = this.#clock.now()
    waiter.askedAt = asked
    const view = queue.view(id, revision)
    if (view) Object.assign(waiter, { ahead: view.ahead, roundTrips: view.roundTrips })
    if (view && !view.held) waiter.freeSince = Math.min(waiter.freeSince ?? view.freeSince, view.freeSince)
    const isWoken = view !== undefined && !view.held && isTurn(waiter, asked)
    let beating = isWoken ? this.#keepForTake(waiter, limit) : this.#keepAll(queue, waiter, limit)
    beating.catch(() => {}) // awaited below
    if (!isWoken) {
      const state = await this.#look(claim, waiter, queue)
      if (typeof state === 'object' && (await beating).ttl > 0) return state
      signal.throwIfAborted()
      beating = this.#keepForTake(waiter, limit)
      beating.catch(() => {})
    }
    waiter.mayHold = true
    const taking = this.#gateway.txn(take(this.#keys, claim, lease, revision), limit)
    const [, answer] = await Promise.all([beating, taking.catch(orMissing)])
    waiter.mayHold = false
    const { beat, beatAt } = waiter
    if (answer?.succeeded) {
      queue.leave(id)
      // Another claim may have sent the keepalive long before this request.
      const age = beat.ttl > 0 ? Math.max(asked - beatAt, 0) : 0
      return granted(answer.header.revision, { ...beat, ttl: Math.floor(beat.ttl - age) }, termOf(answer.header))
    }
    const state = beat.ttl > 0 ? await this.#look(claim, waiter, queue) : 'gone'
    if (typeof state === 'object') return state
    // Another claim held the name for a moment. This one is still the next.
    if (state === 'turn') return this.busy(claim, undefined, waiter.ahead, waiter, queue)
    // Its position lapsed, it was withdrawn, or it holds through a request whose answer was lost.
    queue.leave(id)
    signal.throwIfAborted()
    return undefined
  }

  /** A claim that is about to hold, and was kept alive just now, skips the keepalive: its renewals start soon enough. */
  async #keepForTake(waiter: Waiter, limit: number): Promise<KeepAlive> {
    const { beat, beatAt } = waiter
    if (this.#clock.now() - beatAt < beat.ttl / 10) return beat
    waiter.beating ??= this.#keepPlace(waiter, limit)
    return waiter.beating
  }

  /** Keeps the lease of a waiter alive, and those of all that still ask, if that was not done a short time ago. */
  async #keepAll(queue: Queue, waiter: Waiter, limit: number): Promise<KeepAlive> {
    const { askedAt: now, beat, beatAt } = waiter
    if (now - beatAt < beat.ttl / 4) return beat
    waiter.beating ??= this.#keepPlace(waiter, limit)
    for (const each of queue.waiters.values()) {
      if (each.beating || now - each.beatAt < each.beat.ttl / 10 || now - each.askedAt > each.beat.ttl / 2) continue
      each.beating = this.#keepPlace(each, limit)
      each.beating.catch(() => {}) // it asks, and finds out why
    }
    return waiter.beating
  }

  async #keepPlace(waiter: Waiter, limit: number): Promise<KeepAlive> {
    const now = this.#clock.now()
    try {
      waiter.beat = await this.#requests.keepAlive(waiter.lease, limit)
      waiter.beatAt = now
      return waiter.beat
    } finally {
      waiter.beating = undefined
    }
  }

  /** Reads the state of a waiter, since the watch may lag: it must wait, it may take the name, or its position is gone. */
  async #look(claim: Claim, waiter: Waiter, queue: Queue): Promise<Busy | 'turn' | 'gone'> {
    const { name, id, ttl } = claim
    const limit = requestLimit(ttl)
    const agrees = !waiter.mayHold && (await queue.agrees(() => this.#requests.survey(name, limit)))
    const view = agrees ? queue.view(id, waiter.revision) : undefined
    let held = view?.held
    if (view) Object.assign(waiter, { ahead: view.ahead, roundTrips: view.roundTrips })
    else {
      const read = { success: situation(this.#keys, claim, waiter.revision) }
      const found = situationOf(await this.#gateway.txn(read, limit), true)
      if (found.isGone || found.place?.create_revision !== waiter.revision) return 'gone'
      waiter.ahead = found.waiting
      waiter.roundTrips = roundTrips(found.first.map(each => ({ roundTrip: roundTripAt(each) })))
      held = found.held
    }
    if (held && idOf(held) === id) return 'gone'
    const now = this.#clock.now()
    waiter.freeSince = held ? undefined : (waiter.freeSince ?? now)
    return isTurn(waiter, now) ? 'turn' : this.busy(claim, held, waiter.ahead, waiter, queue)
  }

  /** The answer for a claim that does not get the name. `waiter` and `queue`: if it is in the queue. */
  async busy(
    { name, ttl, queue: mayJoin }: Claim,
    held: KeyValue | undefined,
    ahead: number,
    waiter?: Waiter,
    queue?: Queue,
  ): Promise<Busy> {
    const remaining = held ? await this.#leases.remaining(held.lease ?? '0') : 0
    const now = this.#clock.now()
    const freeAt = held ? now + Math.max(remaining, SWEEP) : (waiter?.freeSince ?? now)
    const turn = askAgainAfter(now, freeAt + (waiter?.roundTrips ?? 0), ahead, waiter?.beat.ttl ?? ttl, mayJoin)
    // A third of the time that its position lasts, counted from when it was last renewed.
    const lapse = waiter ? Math.max(waiter.beatAt + waiter.beat.ttl / 3 - now, 1) : turn
    return {
      held: false,
      retryAfter: Math.min(turn, lapse, queue && !queue.isReady ? POLL : turn),
      ahead,
      listens: queue?.isReady,
      holder: held && holderOf(name, held, Math.max(remaining, 1)),
    }
  }

  #queue(name: string): Queue {
    let queue = this.#queues.get(name)
    if (!queue) {
      const made = new Queue(this.#gateway, this.#keys, name, this.#clock, () => {
        if (this.#queues.get(name) === made) this.#queues.delete(name)
      })
      queue = made
      this.#queues.set(name, made)
    }
    return queue
  }
}

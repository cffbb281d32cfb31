import type { Busy, Claim, ClaimKey, Grant, LeaseRecord, Store } from '../contract/store.ts'
import { LONGEST_TRY, requestLimit } from '../contract/time.ts'
import type { Core } from './core.ts'
import { withdraw } from './withdraw.ts'

/** The most tickets that a call asks for before it waits or gives up, one after the other. */
const FIRST_ROUND = 16

/** The most tickets of each further round of a call that waits. */
const ROUND = 4

/** Milliseconds between two rounds: the shortest pause, and what is added at random. So a call sends about 40 requests a second. */
const [SHORTEST_PAUSE, JITTER] = [50, 100]

/**
 * A permit over a store whose claims hold alone: a lease on one of `limit` names, its tickets. They are tried from a random
 * start, one at a time, so that a call never holds two. To the acquisition this is a store and the permit is one claim.
 */
export class Tickets implements Pick<Store, 'acquire' | 'release'> {
  readonly guarantees: Store['guarantees']
  /** Acquire requests so far. */
  requests = 0
  /** The clock's time before the last of them. */
  sent = 0
  readonly #core: Core
  readonly #claim: Claim
  readonly #limit: number
  #next: number
  #round = FIRST_ROUND
  /** The ticket that may be held: it was granted, or its request was not answered. It is asked for first. */
  #current: number | undefined
  /** All tickets of which a request may still arrive, and the current one. */
  readonly #inDoubt = new Set<number>()

  constructor(core: Core, claim: Claim) {
    const { limit = 1 } = claim
    this.guarantees = core.store.guarantees
    this.#core = core
    this.#claim = claim
    this.#limit = limit
    this.#next = Math.floor(core.random() * limit)
  }

  /** Asks for some tickets. Busy: none of them was free. */
  async acquire({ ttl }: Claim, signal: AbortSignal): Promise<Grant | Busy> {
    const { clock, random, store } = this.#core
    const started = clock.now()
    const most = Math.min(this.#round, this.#limit)
    let holder: LeaseRecord | undefined
    // The request of the acquisition has a limit as well, in which the last of these must be answered.
    const giveUpAt = started + Math.min(requestLimit(ttl), LONGEST_TRY) / 4
    for (let asked = 0; asked < most && clock.now() <= giveUpAt; asked += 1) {
      signal.throwIfAborted()
      const ticket = this.#current ?? this.#next
      const wasInDoubt = this.#inDoubt.has(ticket)
      this.#current = ticket
      this.#inDoubt.add(ticket)
      this.requests += 1
      this.sent = clock.now()
      const { name, id } = this.#of(ticket)
      const answer = await store.acquire({ ...this.#claim, name, id, queue: false, limit: undefined }, signal)
      signal.throwIfAborted()
      if (answer.held) return { ...answer, slots: [ticket] }
      this.#current = undefined
      if (!wasInDoubt) this.#inDoubt.delete(ticket)
      this.#next = (ticket + 1) % this.#limit
      holder = answer.holder ?? holder
    }
    this.#round = ROUND
    return { held: false, retryAfter: SHORTEST_PAUSE + random() * JITTER, holder }
  }

  /** Withdraws everything that requests of this call may have left or may still acquire. */
  async release(_: ClaimKey, signal: AbortSignal): Promise<'released' | 'gone'> {
    const releases = [...this.#inDoubt].map(ticket => this.#core.store.release(this.#of(ticket), signal))
    return (await Promise.all(releases)).includes('released') ? 'released' : 'gone'
  }

  /** Returns the claim on the granted ticket. Withdraws what requests for other tickets may still acquire. */
  settle(): Claim {
    const { inBackground } = this.#core
    for (const ticket of this.#inDoubt)
      if (ticket !== this.#current) inBackground(withdraw(this.#core, this.#of(ticket), true))
    return this.#of(this.#current ?? 0)
  }

  #of(ticket: number): Claim {
    return { ...this.#claim, name: ticketName(this.#claim.name, ticket) }
  }
}

/** The name of the lease that a ticket is. Ticket 0 has the name of the semaphore, so a semaphore of one is a lock. */
export function ticketName(name: string, ticket: number): string {
  return ticket === 0 ? name : `${name}#${ticket}`
}

/** Is a permit a lease on one of several names over this store? Its claims hold alone, and it keeps no queue for others. */
export function hasTickets({ guarantees }: Pick<Store, 'guarantees'>): boolean {
  return guarantees?.sharing !== 'slots'
}

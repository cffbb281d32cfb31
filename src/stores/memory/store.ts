import type {
  BreakParameters,
  Busy,
  Claim,
  ClaimKey,
  Grant,
  Guarantees,
  LeaseRecord,
  NoneGranted,
  Query,
  Selection,
  SomeGranted,
  Store,
  Wake,
} from '../../contract/store.ts'
import { type Clock, LONGEST_REQUEST, turnAfter } from '../../contract/time.ts'
import { askAgainAfter, mayTake, placeLifetime, roundTrips } from '../shared/queue.ts'
import { select } from '../shared/selection.ts'
import { guarantees } from './guarantees.ts'

interface Holding {
  readonly claim: Claim
  readonly token: number
  readonly expires: number
}

interface Place {
  readonly claim: Claim
  readonly roundTrip: number | undefined
  readonly lapses: number
}

/** One name that is held or waited for. */
interface Entry {
  holding: Holding | undefined
  /** When the name was last freed. The grace periods of the queue count from here. */
  freeSince: number
  queue: Place[]
}

export class MemoryStore implements Store {
  readonly kind = 'memory'
  readonly guarantees: Guarantees = guarantees
  readonly #clock: Clock
  readonly #entries = new Map<string, Entry>()
  readonly #wakes = new Map<string, Wake>()
  /** Ids that were withdrawn before they arrived, and until when a stale request may still arrive. */
  readonly #tombstones = new Map<string, number>()
  #counter = 0
  #sweepAbove = 1_000

  constructor(clock: Clock) {
    this.#clock = clock
  }

  async acquire(claim: Claim, signal: AbortSignal): Promise<Grant | Busy> {
    signal.throwIfAborted()
    return this.#acquire(claim, this.#clock.now())
  }

  async acquireSome(selection: Selection, signal: AbortSignal): Promise<SomeGranted | NoneGranted> {
    signal.throwIfAborted()
    const now = this.#clock.now()
    return select(
      {
        acquire: claim => this.#acquire(claim, now),
        holds: claim => this.#entry(claim.name, now).holding?.claim.id === claim.id,
        leave: claim => void this.#leave(claim, now),
        release: claim => void this.#end(claim, now),
        isFree: claim => !this.#tombstones.has(claim.id) && isFree(this.#entry(claim.name, now), claim.id, now),
        isUnused: name => {
          const { holding, queue } = this.#entry(name, now)
          return !holding && queue.length === 0
        },
        holder: name => {
          const { holding } = this.#entry(name, now)
          return holding && holderRecord(holding, now)
        },
      },
      selection,
    )
  }

  async renew(claim: Claim, signal: AbortSignal): Promise<Grant | undefined> {
    signal.throwIfAborted()
    const now = this.#clock.now()
    const entry = this.#entry(claim.name, now)
    const holding = entry.holding
    return holding?.claim.id === claim.id ? renewed(entry, holding, claim.ttl, now) : undefined
  }

  async annotate({ name, id, note }: Claim, signal: AbortSignal): Promise<boolean> {
    signal.throwIfAborted()
    const entry = this.#entry(name, this.#clock.now())
    const holding = entry.holding
    if (holding?.claim.id !== id) return false
    entry.holding = { ...holding, claim: { ...holding.claim, note } }
    return true
  }

  async release(key: ClaimKey, signal: AbortSignal): Promise<'released' | 'gone'> {
    signal.throwIfAborted()
    const now = this.#clock.now()
    if (this.#end(key, now) || this.#leave(key, now)) return 'released'
    this.#tombstones.set(key.id, now + LONGEST_REQUEST)
    return 'gone'
  }

  async watch({ id }: ClaimKey, wake: Wake, signal: AbortSignal): Promise<void> {
    if (signal.aborted) return
    this.#wakes.set(id, wake)
    const end = (): void => {
      if (this.#wakes.get(id) === wake) this.#wakes.delete(id)
    }
    signal.addEventListener('abort', end, { once: true })
  }

  async *inspect(query: Query, signal: AbortSignal): AsyncIterable<LeaseRecord> {
    signal.throwIfAborted()
    const now = this.#clock.now()
    const names =
      'name' in query ? [query.name] : [...this.#entries.keys()].filter(name => name.startsWith(query.prefix))
    for (const name of names.sort()) {
      const { holding, queue } = this.#entry(name, now)
      if (holding) yield holderRecord(holding, now)
      for (const [position, { claim, lapses }] of queue.entries()) {
        const { owner, note } = claim
        yield { name, state: 'waiting', owner, note, remaining: lapses - now, position }
      }
    }
  }

  async break(name: string, { token }: BreakParameters, signal: AbortSignal): Promise<bigint | undefined> {
    signal.throwIfAborted()
    const now = this.#clock.now()
    const entry = this.#entry(name, now)
    const { holding } = entry
    if (!holding || (token !== undefined && BigInt(holding.token) !== token)) return undefined
    this.#free(entry, now)
    return BigInt(this.#nextToken())
  }

  async [Symbol.asyncDispose](): Promise<void> {
    // Nothing is open, and other locks of this process may share the store.
  }

  /** The entry as it is `now`, without expired leases and lapsed positions. */
  #entry(name: string, now: number): Entry {
    this.#sweep(now)
    const entry = this.#entries.get(name) ?? { holding: undefined, freeSince: Number.NEGATIVE_INFINITY, queue: [] }
    this.#entries.set(name, entry)
    expire(entry, now)
    return entry
  }

  #acquire(claim: Claim, now: number): Grant | Busy {
    if (this.#tombstones.has(claim.id)) return { held: false, retryAfter: LONGEST_REQUEST }
    const entry = this.#entry(claim.name, now)
    if (isFree(entry, claim.id, now)) return this.#grant(claim, now)
    const { holding, queue, freeSince } = entry
    const ahead = placeOf(entry, claim.id)
    if (claim.queue) queue[ahead] = { claim, roundTrip: claim.roundTrip, lapses: now + placeLifetime(claim.ttl) }
    const freeAt = (holding ? holding.expires : freeSince) + roundTrips(entry.queue, ahead)
    return {
      held: false,
      retryAfter: askAgainAfter(now, freeAt, ahead, claim.ttl, claim.queue),
      ahead,
      holder: holding && holderRecord(holding, now),
    }
  }

  /** False: the claim did not hold. */
  #end({ name, id }: ClaimKey, now: number): boolean {
    const entry = this.#entry(name, now)
    const held = entry.holding?.claim.id === id
    if (held) this.#free(entry, now)
    return held
  }

  /** False: the claim did not wait. */
  #leave({ name, id }: ClaimKey, now: number): boolean {
    const entry = this.#entry(name, now)
    const { length } = entry.queue
    entry.queue = entry.queue.filter(place => place.claim.id !== id)
    const waited = entry.queue.length < length
    if (waited && !entry.holding) this.#wakeFirst(entry)
    return waited
  }

  /** Of a claim that holds its name, or that may take it. */
  #grant(claim: Claim, now: number): Grant {
    const entry = this.#entry(claim.name, now)
    const { holding } = entry
    // A stale copy of the request must not shorten what a renewal has extended since.
    if (holding && holding.expires > now + claim.ttl) return grant(holding.token, claim.ttl)
    if (holding) return renewed(entry, holding, claim.ttl, now)
    entry.queue = entry.queue.filter(place => place.claim.id !== claim.id)
    const token = this.#nextToken()
    entry.holding = { claim, token, expires: now + claim.ttl }
    return grant(token, claim.ttl)
  }

  #free(entry: Entry, now: number): void {
    entry.holding = undefined
    entry.freeSince = now
    this.#wakeFirst(entry)
  }

  /** Wakes the first that is watched: one before it may be between its request and its watch, and asks again anyway. */
  #wakeFirst(entry: Entry): void {
    const { queue } = entry
    const isWatched = ({ claim }: Place): boolean => this.#wakes.has(claim.id)
    const first = queue.findIndex(isWatched)
    if (first < 0) return
    this.#wakes.get(queue[first]?.claim.id ?? '')?.()
    // If the first does not ask, the next one comes when its grace period is over.
    const next = queue.findIndex((place, index) => index > first && isWatched(place))
    if (next > 0) this.#wakes.get(queue[next]?.claim.id ?? '')?.(turnAfter(next) + roundTrips(queue, next))
  }

  #nextToken(): number {
    this.#counter = Math.max(this.#counter + 1, Math.floor(this.#clock.wall() * 1_000))
    return this.#counter
  }

  /** Drops idle names and old tombstones whenever their number has doubled: amortised O(1) per call. */
  #sweep(now: number): void {
    if (this.#entries.size + this.#tombstones.size <= this.#sweepAbove) return
    for (const [id, until] of this.#tombstones) if (until <= now) this.#tombstones.delete(id)
    for (const [name, entry] of this.#entries) {
      expire(entry, now)
      if (!entry.holding && entry.queue.length === 0) this.#entries.delete(name)
    }
    this.#sweepAbove = Math.max(1_000, 2 * (this.#entries.size + this.#tombstones.size))
  }
}

/** The position of the claim in the queue, or the one that it would get. */
function placeOf({ queue }: Entry, id: string): number {
  const place = queue.findIndex(({ claim }) => claim.id === id)
  return place < 0 ? queue.length : place
}

/** Does the claim hold the name, or may it take it? */
function isFree(entry: Entry, id: string, now: number): boolean {
  if (entry.holding) return entry.holding.claim.id === id
  const ahead = placeOf(entry, id)
  return mayTake(now, entry.freeSince + roundTrips(entry.queue, ahead), ahead)
}

function renewed(entry: Entry, { claim, token }: Holding, ttl: number, now: number): Grant {
  entry.holding = { claim, token, expires: now + ttl }
  return grant(token, ttl)
}

function grant(token: number, ttl: number): Grant {
  return { held: true, token: BigInt(token), ttl }
}

function expire(entry: Entry, now: number): void {
  if (entry.holding && entry.holding.expires <= now) {
    entry.freeSince = entry.holding.expires
    entry.holding = undefined
  }
  if (entry.queue.some(place => place.lapses <= now)) entry.queue = entry.queue.filter(place => place.lapses > now)
}

function holderRecord({ claim, token, expires }: Holding, now: number): LeaseRecord {
  const { name, owner, note } = claim
  return { name, state: 'held', owner, token: BigInt(token), note, remaining: expires - now }
}

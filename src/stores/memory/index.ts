import type { Busy, Claim, ClaimKey, Grant, Guarantees, LeaseRecord, Query, Store, Wake } from '../../contract/store.ts'
import { type Clock, LONGEST_REQUEST, systemClock, TURN } from '../../contract/time.ts'
import { askAgainAfter, mayTake, placeLifetime } from '../shared/queue.ts'
import { type ShortestTtl, withShortestTtl } from '../shared/shortest-ttl.ts'

export interface MemoryOptions extends ShortestTtl {
  /** @default the clocks of this process */
  readonly clock?: Clock
}

const guarantees: Guarantees = {
  scope: 'process',
  exclusion: 'always, among those who share the store in one process',
  token: 'a counter, never below the wall clock in microseconds, so that it rises across restarts of the process',
  order: 'first come, first served',
  waiting: 'pushed',
  shortestTtl: 10,
  clock: 'the monotonic clock of the process, and forward steps of its wall clock',
  durability: 'nothing survives the process',
  limits: ['Other processes, and worker threads, do not share it.'],
}

interface Holding {
  readonly claim: Claim
  readonly token: number
  readonly expires: number
}

interface Place {
  readonly claim: Claim
  readonly lapses: number
}

/** All about one name that is held or waited for. */
interface Entry {
  holding: Holding | undefined
  /** When the name last fell free; the turns of the line count from here. */
  freeSince: number
  line: Place[]
}

/** A store inside this process, shared by all who are given it. Also the reference for what every store must do. */
export function memory(options: MemoryOptions = {}): Store {
  return withShortestTtl(new MemoryStore(options.clock ?? systemClock()), options.shortestTtl)
}

class MemoryStore implements Store {
  readonly kind = 'memory'
  readonly guarantees: Guarantees = guarantees
  readonly #clock: Clock
  readonly #entries = new Map<string, Entry>()
  readonly #wakes = new Map<string, Wake>()
  /** Ids that were withdrawn before they arrived, and until when a late arrival is possible. */
  readonly #tombstones = new Map<string, number>()
  #counter = 0
  #sweepAbove = 1_000

  constructor(clock: Clock) {
    this.#clock = clock
  }

  async acquire(claim: Claim, signal: AbortSignal): Promise<Grant | Busy> {
    signal.throwIfAborted()
    const now = this.#clock.now()
    if (this.#tombstones.has(claim.id)) return { held: false, retryAfter: LONGEST_REQUEST }
    const entry = this.#entry(claim.name, now)
    const holding = entry.holding
    // A copy of the request that comes late must not shorten what a renewal has made longer since.
    if (holding?.claim.id === claim.id && holding.expires > now + claim.ttl) return grant(holding.token, claim.ttl)
    if (holding?.claim.id === claim.id) return renewed(entry, holding, claim.ttl, now)

    let ahead = entry.line.findIndex(place => place.claim.id === claim.id)
    if (ahead < 0) ahead = entry.line.length
    if (!holding && mayTake(now, entry.freeSince, ahead)) {
      entry.line = entry.line.filter(place => place.claim.id !== claim.id)
      const token = this.#nextToken()
      entry.holding = { claim, token, expires: now + claim.ttl }
      return grant(token, claim.ttl)
    }
    if (claim.queue) entry.line[ahead] = { claim, lapses: now + placeLifetime(claim.ttl) }
    const freeAt = holding ? holding.expires : entry.freeSince
    return {
      held: false,
      retryAfter: askAgainAfter(now, freeAt, ahead, claim.ttl, claim.queue),
      ahead,
      holder: holding && holderRecord(holding, now),
    }
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

  async release({ name, id }: ClaimKey, signal: AbortSignal): Promise<'released' | 'gone'> {
    signal.throwIfAborted()
    const now = this.#clock.now()
    const entry = this.#entry(name, now)
    const length = entry.line.length
    entry.line = entry.line.filter(place => place.claim.id !== id)
    if (entry.holding?.claim.id === id) this.#free(entry, now)
    else if (entry.line.length === length) {
      this.#tombstones.set(id, now + LONGEST_REQUEST)
      return 'gone'
    } else if (!entry.holding) this.#wakeHead(entry)
    return 'released'
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
      const { holding, line } = this.#entry(name, now)
      if (holding) yield holderRecord(holding, now)
      for (const [position, { claim, lapses }] of line.entries()) {
        const { owner, note } = claim
        yield { name, state: 'waiting', owner, note, remaining: lapses - now, position }
      }
    }
  }

  async break(name: string, _by: string, signal: AbortSignal): Promise<bigint | undefined> {
    signal.throwIfAborted()
    const now = this.#clock.now()
    const entry = this.#entry(name, now)
    if (!entry.holding) return undefined
    this.#free(entry, now)
    return BigInt(this.#nextToken())
  }

  async [Symbol.asyncDispose](): Promise<void> {
    // Nothing is open; and others in this process may share the store.
  }

  /** The entry as it is `now`: a lease that ran out and places that lapsed are gone. */
  #entry(name: string, now: number): Entry {
    this.#sweep(now)
    const entry = this.#entries.get(name) ?? { holding: undefined, freeSince: Number.NEGATIVE_INFINITY, line: [] }
    this.#entries.set(name, entry)
    expire(entry, now)
    return entry
  }

  #free(entry: Entry, now: number): void {
    entry.holding = undefined
    entry.freeSince = now
    this.#wakeHead(entry)
  }

  /** The first who can be woken: the one before it may be between its request and its watch, and asks again anyway. */
  #wakeHead({ line }: Entry): void {
    const isWatched = ({ claim }: Place): boolean => this.#wakes.has(claim.id)
    const head = line.findIndex(isWatched)
    if (head < 0) return
    this.#wakes.get(line[head]?.claim.id ?? '')?.()
    // Should the head not take its turn, the next is there when that is over.
    const next = line.findIndex((place, index) => index > head && isWatched(place))
    if (next > 0) this.#wakes.get(line[next]?.claim.id ?? '')?.(next * TURN)
  }

  #nextToken(): number {
    this.#counter = Math.max(this.#counter + 1, Math.floor(this.#clock.wall() * 1_000))
    return this.#counter
  }

  /** Idle names and old tombstones are dropped whenever their number has doubled: O(1) a call, spread out. */
  #sweep(now: number): void {
    if (this.#entries.size + this.#tombstones.size <= this.#sweepAbove) return
    for (const [id, until] of this.#tombstones) if (until <= now) this.#tombstones.delete(id)
    for (const [name, entry] of this.#entries) {
      expire(entry, now)
      if (!entry.holding && entry.line.length === 0) this.#entries.delete(name)
    }
    this.#sweepAbove = Math.max(1_000, 2 * (this.#entries.size + this.#tombstones.size))
  }
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
  if (entry.line.some(place => place.lapses <= now)) entry.line = entry.line.filter(place => place.lapses > now)
}

function holderRecord({ claim, token, expires }: Holding, now: number): LeaseRecord {
  const { name, owner, note } = claim
  return { name, state: 'held', owner, token: BigInt(token), note, remaining: expires - now }
}

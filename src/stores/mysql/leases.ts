import { LeaseError } from '../../contract/errors.ts'
import type { Busy, Claim, ClaimKey, Grant, LeaseRecord } from '../../contract/store.ts'
import { LONGEST_REQUEST, roundTripOf } from '../../contract/time.ts'
import { askAgainAfter, mayTake, placeLifetime, roundTrips } from '../shared/queue.ts'

/** The row of a name: held until `expires`, by the server's clock in ms; or, without an `id`, free since then. */
export interface Lease {
  readonly id: string | undefined
  readonly owner: string
  readonly note: string
  readonly token: number
  readonly ttl: number
  readonly expires: number
  /** Replaced by each write. 0: there is no row yet. */
  readonly stamp: number
}

/** A waiter until `lapses`; or a claim that was withdrawn (`gone`) and is refused until then. */
export interface Place {
  readonly id: string
  readonly owner: string
  readonly note: string
  readonly seq: number
  readonly lapses: number
  readonly gone: boolean
  readonly roundTrip: number
}

/** The answer to a claim that was withdrawn. */
export const REFUSED: Busy = { held: false, retryAfter: LONGEST_REQUEST }

const LAST_TOKEN = Number.MAX_SAFE_INTEGER

/** A name as it was read at `now`, and what is to be written. It only decides: nothing here asks the server. */
export class Name {
  readonly name: string
  readonly now: number
  lease: Lease
  isChanged: boolean = false
  /** Is it unknown whether the lease was written? */
  isUnclear: boolean = false
  /** After this moment the lease must not be written. */
  until: number = Number.POSITIVE_INFINITY
  /** After this moment what the next decision writes must not be written. */
  limit: number = Number.POSITIVE_INFINITY
  /** Milliseconds that a grant takes: the claim reads the name and then writes it. */
  roundTrip: number = 0
  /** Places to write, by id, each until a moment. */
  readonly joins: Map<string, Place & { readonly until: number }> = new Map()
  readonly #places: Map<string, Place>

  /** `places` are in order. */
  constructor(name: string, now: number, lease: Lease, places: readonly Place[]) {
    this.name = name
    this.now = now
    this.lease = lease
    this.#places = new Map(places.map(place => [place.id, place]))
  }

  acquire({ id, owner, note, ttl, queue, roundTrip = this.roundTrip }: Claim): Grant | Busy {
    const { now } = this
    const own = this.#places.get(id)
    if (own?.gone && own.lapses > now) return REFUSED
    // The clock was set back after this was written.
    if (this.lease.expires > now + this.lease.ttl + 1) this.#put({ expires: now + this.lease.ttl })
    const { expires } = this.lease
    const waiters = this.#waiters
    const place = waiters.find(each => each.id === id)
    const ahead = place ? waiters.indexOf(place) : waiters.length
    const later = roundTrips(waiters, ahead)
    const isOwn = this.#isHeldBy(id)
    if (isOwn || (!this.#isHeld && mayTake(now, Math.min(expires, now) + later, ahead))) {
      const until = isOwn ? Math.max(expires, now + ttl) : now + ttl // a stale copy must not undo a longer renewal
      if (isOwn) this.#put({ expires: until, ttl: Math.ceil(until - now) })
      else this.#put({ id, owner, note, ttl, token: this.#nextToken(), expires: until })
      return { held: true, token: BigInt(this.lease.token), ttl }
    }
    const lapses = now + placeLifetime(ttl)
    // It is written again when a quarter of its lifetime is over: a waiter asks after a third. And if the clock was set back.
    const left = place ? place.lapses - now : 0
    if (queue && (left <= 0.75 * placeLifetime(ttl) || left > placeLifetime(ttl) + 1))
      this.#join({
        id,
        owner,
        note,
        seq: place?.seq ?? this.#nextSeq(),
        lapses,
        gone: false,
        roundTrip: roundTripOf(roundTrip),
      })
    const retryAfter = askAgainAfter(now, expires + later, ahead, ttl, queue, false)
    return { held: false, retryAfter, ahead, holder: this.records().find(({ state }) => state === 'held') }
  }

  renew({ id, ttl }: Claim): Grant | undefined {
    if (!this.#isHeldBy(id)) return undefined
    this.#putWhileHeld({ ttl, expires: this.now + ttl })
    return { held: true, token: BigInt(this.lease.token), ttl }
  }

  annotate({ id, note }: Claim): boolean {
    const isHeld = this.#isHeldBy(id)
    if (isHeld) this.#putWhileHeld({ note })
    return isHeld
  }

  release({ id }: ClaimKey): 'released' | 'gone' {
    const place = [...this.#places.values()].find(each => each.id === id && this.#isLive(each))
    if (place) this.#join({ ...place, lapses: 0 })
    if (this.#isHeldBy(id)) this.#put({ id: undefined, ttl: 0, expires: this.now })
    else if (!place) {
      this.#join({ id, owner: '', note: '', seq: 0, lapses: this.now + LONGEST_REQUEST, gone: true, roundTrip: 0 })
      this.#put({}) // an acquire that was decided before fails by the stamp; a later one sees the tombstone
      return 'gone'
    }
    return 'released'
  }

  /** Of the lease with the token `of`, or of any. */
  break(of?: bigint): { of: bigint; token: bigint } | undefined {
    const held = BigInt(this.lease.token)
    if (!this.#isHeld || (of !== undefined && of !== held)) return undefined
    this.#put({ id: undefined, ttl: 0, expires: this.now, token: this.#nextToken() })
    return { of: held, token: BigInt(this.lease.token) }
  }

  records(): LeaseRecord[] {
    const { name, now } = this
    const { owner, note, token, expires } = this.lease
    const holder: LeaseRecord = { name, state: 'held', owner, note, token: BigInt(token), remaining: expires - now }
    const waiters = this.#waiters.map(({ owner, note, lapses }, position): LeaseRecord => {
      return { name, state: 'waiting', owner, note, remaining: lapses - now, position }
    })
    return this.#isHeld ? [holder, ...waiters] : waiters
  }

  /** Places to delete once the lease is written: that of the holder, and those that have lapsed. */
  get ended(): Place[] {
    if (this.lease.id === undefined) return []
    const places = [...this.#places.values()]
    const own = places.filter(({ id, gone }) => id === this.lease.id && !gone) // its tombstone stays
    return [...own, ...places.filter(({ lapses }) => lapses <= this.now)]
  }

  get #isHeld(): boolean {
    return this.lease.id !== undefined && this.lease.expires > this.now
  }

  #isHeldBy(id: string): boolean {
    return this.#isHeld && this.lease.id === id
  }

  get #waiters(): Place[] {
    // That of the holder stays if it was locked when the holder was served.
    return [...this.#places.values()].filter(place => this.#isLive(place) && !this.#isHeldBy(place.id))
  }

  #isLive({ gone, lapses }: Place): boolean {
    return !gone && lapses > this.now
  }

  #join(place: Place): void {
    this.joins.set(place.id, { ...place, until: this.limit })
    this.#places.set(place.id, place)
  }

  #put(changes: Partial<Lease>): void {
    this.lease = { ...this.lease, ...changes }
    this.isChanged = true
  }

  /** A lease that ends before the write is not revived by it. */
  #putWhileHeld(changes: Partial<Lease>): void {
    this.until = Math.min(this.until, this.lease.expires)
    this.#put(changes)
  }

  #nextSeq(): number {
    return Math.max(Math.floor(this.now * 1_000), ...this.#waiters.map(({ seq }) => seq + 1))
  }

  #nextToken(): number {
    const token = Math.max(this.lease.token + 1, Math.floor(this.now * 1_000))
    if (token <= LAST_TOKEN) return token
    const message =
      `the name has used up its tokens: its counter is at ${LAST_TOKEN}. End the holder, delete the row of the name, and ` +
      'begin the next epoch of fences that saw that token (docs/stores/mysql.md)'
    throw new LeaseError('STORE_UNAVAILABLE', message, { retryable: false })
  }
}

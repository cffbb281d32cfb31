import type { Claim } from '../../contract/store.ts'
import type { Clock } from '../../contract/time.ts'
import { positionLifetime } from '../rules/name.ts'
import type { Place } from './place.ts'
import type { Watches } from './watches.ts'

/** The fields that are unknown for a new node. */
export const NOTHING = { node: undefined, token: undefined, behind: undefined }

const WITHDRAWN = Number.NEGATIVE_INFINITY

/** The claims that have a node of one session or may have one. */
export class Places {
  readonly #clock: Clock
  readonly #watches: Watches
  readonly #places = new Map<string, Place>()
  /** The number of claims of each name that have a place, without those that are being withdrawn. */
  readonly #staying = new Map<string, number>()

  constructor(clock: Clock, watches: Watches) {
    this.#clock = clock
    this.#watches = watches
  }

  get(id: string): Place | undefined {
    return this.#places.get(id)
  }

  all(): Place[] {
    return [...this.#places.values()]
  }

  /** The place of a claim that asks, created if it has none. Its position is kept for another lifetime. */
  of(claim: Claim): Place {
    const { name, id, ttl } = claim
    let place = this.#places.get(id)
    if (!place) {
      place = { name, id, claim, czxid: 0n, watch: undefined, until: 0, isLeaving: false, ...NOTHING }
      this.#places.set(id, place)
      this.#staying.set(name, (this.#staying.get(name) ?? 0) + 1)
    }
    place.claim = claim
    place.until = this.#clock.now() + positionLifetime(ttl)
    return place
  }

  /**
   * Keeps the place of a claim if it has one. It never lapses sooner than before, and a withdrawn claim stays withdrawn.
   */
  keep(claim: Claim): Place | undefined {
    const { id, ttl } = claim
    const place = this.#places.get(id)
    if (place) place.claim = claim
    if (place && !isWithdrawn(place)) place.until = Math.max(place.until, this.#clock.now() + positionLifetime(ttl))
    return place
  }

  /** The claim is being withdrawn, so it no longer counts in the queue. */
  leave(place: Place): void {
    if (place.isLeaving) return
    place.isLeaving = true
    const others = (this.#staying.get(place.name) ?? 1) - 1
    if (others > 0) this.#staying.set(place.name, others)
    else this.#staying.delete(place.name)
  }

  /** The withdrawal of the claim failed. The next sweep or reconnect deletes its node. */
  abandon(place: Place): void {
    this.leave(place)
    place.until = WITHDRAWN
    place.token = undefined
  }

  forget(place: Place | undefined): void {
    if (!place || this.#places.get(place.id) !== place) return
    this.#places.delete(place.id)
    this.leave(place)
    this.#watches.forget(place.id)
  }

  /** Does a claim of this session wait for the name or hold it? */
  isQueued(name: string): boolean {
    return this.#staying.has(name)
  }

  isHolding(): boolean {
    const now = this.#clock.now()
    return this.all().some(({ token, until }) => token !== undefined && until > now)
  }

  /** The abandoned claims: they did not ask or renew in time, or their withdrawal failed. */
  lapsed(): Place[] {
    const now = this.#clock.now()
    return this.all().filter(({ until }) => until <= now)
  }
}

export function isWithdrawn({ until }: Place): boolean {
  return until === WITHDRAWN
}

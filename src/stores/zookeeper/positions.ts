import type { Claim } from '../../contract/store.ts'
import type { Clock } from '../../contract/time.ts'
import { positionLifetime } from '../rules/name.ts'
import type { Position } from './position.ts'
import type { Watches } from './watches.ts'

/** The fields that are unknown for a new node. */
export const NOTHING = { node: undefined, token: undefined, mayHold: false, behind: undefined }

const WITHDRAWN = Number.NEGATIVE_INFINITY

/** The claims that have a node of one session or may have one. */
export class Positions {
  readonly #clock: Clock
  readonly #watches: Watches
  readonly #positions = new Map<string, Position>()
  /** The number of claims of each name that have a position, without those that are being withdrawn. */
  readonly #staying = new Map<string, number>()

  constructor(clock: Clock, watches: Watches) {
    this.#clock = clock
    this.#watches = watches
  }

  get(id: string): Position | undefined {
    return this.#positions.get(id)
  }

  all(): Position[] {
    return [...this.#positions.values()]
  }

  /** The position of a claim that asks, created if it has none. It never lapses sooner than before. */
  of(claim: Claim): Position {
    const { name, id, ttl } = claim
    let position = this.#positions.get(id)
    if (!position) {
      position = { name, id, claim, czxid: 0n, watch: undefined, until: 0, isLeaving: false, ...NOTHING }
      this.#positions.set(id, position)
      this.#staying.set(name, (this.#staying.get(name) ?? 0) + 1)
    }
    position.claim = claim
    this.#extend(position, positionLifetime(ttl))
    return position
  }

  /**
   * Keeps the position of a claim if it has one. It never lapses sooner than before, and a withdrawn claim stays withdrawn.
   * `mayHold`: a request may grant what the claim has, and its answer may be late.
   */
  keep(claim: Claim, mayHold = false): void {
    const { id, ttl } = claim
    const position = this.#positions.get(id)
    if (position) position.claim = claim
    if (!position || isWithdrawn(position)) return
    this.#extend(position, positionLifetime(ttl))
    if (mayHold && position.node?.kind !== 'w') this.#extend(position, ttl)
  }

  #extend(position: Position, ms: number): void {
    position.until = Math.max(position.until, this.#clock.now() + ms)
  }

  /** The claim is being withdrawn, so it no longer counts in the queue. */
  leave(position: Position): void {
    if (position.isLeaving) return
    position.isLeaving = true
    const others = (this.#staying.get(position.name) ?? 1) - 1
    if (others > 0) this.#staying.set(position.name, others)
    else this.#staying.delete(position.name)
  }

  /** The withdrawal of the claim failed. The next sweep or reconnect deletes its node. */
  abandon(position: Position): void {
    this.leave(position)
    position.until = WITHDRAWN
    position.token = undefined
  }

  forget(position: Position | undefined): void {
    if (!position || this.#positions.get(position.id) !== position) return
    this.#positions.delete(position.id)
    this.leave(position)
    this.#watches.forget(position.id)
  }

  /** Does a claim of this session wait for the name or hold it? */
  isQueued(name: string): boolean {
    return this.#staying.has(name)
  }

  /** Does any of these claims hold, or may hold? */
  isHolding(): boolean {
    const now = this.#clock.now()
    return this.all().some(({ token, mayHold, until }) => (token !== undefined || mayHold) && until > now)
  }

  /** The abandoned claims: they did not ask or renew in time, or their withdrawal failed. */
  lapsed(): Position[] {
    const now = this.#clock.now()
    return this.all().filter(({ until }) => until <= now)
  }
}

export function isWithdrawn({ until }: Position): boolean {
  return until === WITHDRAWN
}

import type { Claim } from '../../contract/store.ts'
import type { Clock } from '../../contract/time.ts'
import { positionLifetime } from '../shared/rules/name.ts'
import type { Group } from './group.ts'
import type { Groups } from './groups.ts'

/**
 * Keeps the positions of the waiters that are watched, all those of a session by one request. A claim is kept for as long as
 * it is watched, whatever it is granted meanwhile: one that has no position is woken when that is found out.
 */
export class Keeper {
  readonly #clock: Clock
  readonly #groups: Groups
  readonly #wake: (id: string) => void
  /** By id. */
  readonly #watched = new Map<string, Claim>()
  /** When all of them are kept again, by the clock. */
  #due = Number.POSITIVE_INFINITY
  #cancel = (): void => {}

  constructor(clock: Clock, groups: Groups, wake: (id: string) => void) {
    this.#clock = clock
    this.#groups = groups
    this.#wake = wake
  }

  add(claim: Claim): void {
    this.#watched.set(claim.id, claim)
    this.#keepWithin(positionLifetime(claim.ttl) / 3)
  }

  remove(claim: Claim): void {
    if (this.#watched.get(claim.id) === claim) this.#watched.delete(claim.id)
  }

  clear(): void {
    this.#watched.clear()
    this.#cancel()
  }

  #keepWithin(delay: number): void {
    const due = this.#clock.now() + delay
    if (due >= this.#due) return
    this.#cancel()
    this.#due = due
    this.#cancel = this.#clock.after(delay, () => this.#keepAll(), true)
  }

  #keepAll(): void {
    this.#due = Number.POSITIVE_INFINITY
    const claims = [...this.#watched.values()]
    if (claims.length === 0) return
    this.#keepWithin(Math.min(...claims.map(({ ttl }) => positionLifetime(ttl))) / 3)
    const waiting = Map.groupBy(claims, ({ id }) => this.#groups.of(id))
    for (const [group, kept] of waiting) void this.#keep(group, kept)
    // Without its session a waiter that is granted the name would first have to begin one.
    for (const [group, later] of Map.groupBy(claims, ({ ttl }) => this.#groups.for(ttl))) {
      if (waiting.has(group)) continue // to attach it again would lose the notifications of its waiters
      const longest = Math.max(...later.map(({ ttl }) => ttl))
      group.connection(longest, longest).catch(() => {}) // the next request of a claim says why
    }
  }

  /** Wakes those that have no position, and those that were woken and have not asked. */
  async #keep(group: Group | undefined, claims: readonly Claim[]): Promise<void> {
    for (const claim of claims) group?.places.keep(claim)
    const isKept = await group?.keep().catch(() => false)
    for (const { id } of claims) if (!isKept || !group?.isWaiting(id)) this.#wake(id)
  }
}

import type { Claim } from '../../contract/store.ts'
import { LONGEST_REQUEST } from '../../contract/time.ts'
import { Group, type GroupListener } from './group.ts'
import type { Node } from './nodes.ts'
import type { Position } from './position.ts'
import { sessionFor } from './session.ts'
import type { Settings } from './settings.ts'

/** Milliseconds of the session for requests without a claim. Its tombstones must last 5 s. */
const UNCLAIMED = 3 * LONGEST_REQUEST

/** The ttl in milliseconds whose session lasts as long as the longest lifetime of a position. */
const LONGEST_WAITER = 3_000

/** The claims of a store, grouped by the length of their sessions. */
export class Groups {
  readonly #settings: Settings
  readonly #shortestSession: number
  readonly #listener: GroupListener
  /** The groups by the length of their sessions. */
  readonly #groups = new Map<number, Group>()
  #unclaimed: Group | undefined

  constructor(settings: Settings, shortestSession: number, listener: GroupListener) {
    this.#settings = settings
    this.#shortestSession = shortestSession
    this.#listener = listener
  }

  /** The session to request for this ttl, in milliseconds. */
  sessionFor(ttl: number): number {
    return Math.max(sessionFor(ttl), this.#shortestSession)
  }

  /** The group for inspection and other requests without a claim. */
  get unclaimed(): Group {
    this.#unclaimed ??= this.#newGroup(UNCLAIMED)
    return this.#unclaimed
  }

  /**
   * The group in which a claim of this ttl waits. Its session is short even if the ttl is long: a dead waiter that does not
   * fit keeps its position until the session ends.
   */
  toWait(ttl: number): Group {
    return this.for(Math.min(ttl, LONGEST_WAITER))
  }

  for(ttl: number): Group {
    const timeout = this.sessionFor(ttl)
    const group = this.#groups.get(timeout) ?? this.#newGroup(timeout)
    this.#groups.set(timeout, group)
    return group
  }

  /** The group in which a claim has a node or may have one. */
  of(id: string): Group | undefined {
    const known = this.#knowing(id)
    return known.find(group => group.positions.get(id)?.node) ?? known[0]
  }

  /**
   * May a transaction whose answer has not come still replace this node? Then a lease is safe only under the name of another
   * node, which that transaction does not know.
   */
  mayReplace(node: Node): boolean {
    return [...this.#groups.values()].some(group => group.mayReplace(node))
  }

  /** The claim asks to hold, so its positions do not lapse. */
  keep(claim: Claim): void {
    for (const group of this.#groups.values()) group.positions.keep(claim, true)
  }

  /** The claim is withdrawn. The next sweep deletes its nodes if nothing else has deleted them. */
  abandon(id: string): void {
    for (const { positions } of this.#knowing(id)) positions.abandon(positions.get(id) as Position)
  }

  /** The claim no longer has a node. */
  forget(id: string): void {
    for (const { positions } of this.#knowing(id)) positions.forget(positions.get(id))
  }

  /** Forgets the positions that a claim has in all other groups. */
  keepOnlyIn(group: Group, id: string): void {
    for (const other of this.#knowing(id)) if (other !== group) other.positions.forget(other.positions.get(id))
  }

  /** Forgets groups whose sessions have ended. */
  drop(): void {
    if (this.#unclaimed?.session.isOver) this.#unclaimed = undefined
    for (const [timeout, group] of this.#groups) {
      if (!group.session.isOver) continue
      this.#groups.delete(timeout)
      group.end()
    }
  }

  async close(): Promise<void> {
    const groups = [...this.#groups.values(), ...(this.#unclaimed ? [this.#unclaimed] : [])]
    await Promise.all(groups.map(group => group.close()))
  }

  #knowing(id: string): Group[] {
    return [...this.#groups.values()].filter(({ positions }) => positions.get(id))
  }

  #newGroup(timeout: number): Group {
    return new Group(this.#settings, timeout, this.#listener)
  }
}

import { LONGEST_REQUEST } from '../../contract/time.ts'
import { Group, type GroupListener } from './group.ts'
import type { Settings } from './place.ts'
import { sessionFor } from './session.ts'

/** Milliseconds of the session for requests without a claim. Its tombstones are needed for 5 s. */
const UNCLAIMED = 3 * LONGEST_REQUEST

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

  for(ttl: number): Group {
    const timeout = this.sessionFor(ttl)
    const group = this.#groups.get(timeout) ?? this.#newGroup(timeout)
    this.#groups.set(timeout, group)
    return group
  }

  /** The group in which a claim has a position. */
  of(id: string): Group | undefined {
    for (const group of this.#groups.values()) if (group.places.get(id)) return group
    return undefined
  }

  /** Forgets the positions of a claim in all other groups. */
  keepOnlyIn(group: Group, id: string): void {
    for (const other of this.#groups.values()) {
      const place = other === group ? undefined : other.places.get(id)
      if (place) other.places.forget(place)
    }
  }

  /** Forgets groups whose sessions are over. */
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

  #newGroup(timeout: number): Group {
    return new Group(this.#settings, timeout, this.#listener)
  }
}

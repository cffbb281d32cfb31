import { LONGEST_REQUEST } from '../../contract/time.ts'
import { Group, type GroupListener, type Settings } from './group.ts'
import { sessionFor } from './session.ts'

/** Milliseconds of the session for all that is no claim; the tombstones that it keeps are needed for 5 s. */
const LOOKING = 3 * LONGEST_REQUEST

/** The claims of a store, grouped by the length of their sessions. */
export class Groups {
  readonly #settings: Settings
  readonly #shortestSession: number
  readonly #listener: GroupListener
  /** By the length of their sessions. */
  readonly #groups = new Map<number, Group>()
  #looking: Group | undefined

  constructor(settings: Settings, shortestSession: number, listener: GroupListener) {
    this.#settings = settings
    this.#shortestSession = shortestSession
    this.#listener = listener
  }

  /** Milliseconds that a session for this ttl is asked for. */
  sessionFor(ttl: number): number {
    return Math.max(sessionFor(ttl), this.#shortestSession)
  }

  /** For all that is no claim. */
  get looking(): Group {
    this.#looking ??= this.#newGroup(LOOKING)
    return this.#looking
  }

  for(ttl: number): Group {
    const timeout = this.sessionFor(ttl)
    const group = this.#groups.get(timeout) ?? this.#newGroup(timeout)
    this.#groups.set(timeout, group)
    return group
  }

  /** Where a claim has a place. */
  of(id: string): Group | undefined {
    for (const group of this.#groups.values()) if (group.places.has(id)) return group
    return undefined
  }

  /** What others knew of a claim counts no more. */
  keepOnlyIn(group: Group, id: string): void {
    for (const other of this.#groups.values()) if (other !== group) other.places.delete(id)
  }

  /** Forgets those whose sessions are over. */
  drop(): void {
    if (this.#looking?.session.isOver) this.#looking = undefined
    for (const [timeout, group] of this.#groups) {
      if (!group.session.isOver) continue
      this.#groups.delete(timeout)
      group.end()
    }
  }

  async close(): Promise<void> {
    const groups = [...this.#groups.values(), ...(this.#looking ? [this.#looking] : [])]
    await Promise.all(groups.map(group => group.close()))
  }

  #newGroup(timeout: number): Group {
    return new Group(this.#settings, timeout, this.#listener)
  }
}

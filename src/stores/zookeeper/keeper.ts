import type { Claim } from '../../contract/store.ts'
import { positionLifetime } from '../rules/name.ts'
import type { Group } from './group.ts'
import type { Groups } from './groups.ts'
import { checkStep, code, multi, readAll } from './protocol.ts'
import type { Settings } from './settings.ts'

/**
 * The largest number of nodes that one request reads. More gain little: 500 take the server 0.7 ms. The request must stay
 * below the server's limit of 1 MB, and a path takes at most 900 bytes.
 */
const MOST_READ = 500

/**
 * Keeps the positions of the waiters that are watched, with one request for each session, and finds those that others have
 * deleted. A claim is kept as long as it is watched, whatever it is granted meanwhile. A claim without a position is woken
 * when a request finds that out, within a third of the lifetime of positions.
 */
export class Keeper {
  readonly #settings: Settings
  readonly #groups: Groups
  readonly #wake: (id: string) => void
  /** The claims that are watched, by id. */
  readonly #watched = new Map<string, Claim>()
  /** The time when all of them must be kept again. */
  #due = Number.POSITIVE_INFINITY
  #cancel = (): void => {}

  constructor(settings: Settings, groups: Groups, wake: (id: string) => void) {
    this.#settings = settings
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
    const { clock } = this.#settings
    const due = clock.now() + delay
    if (due >= this.#due) return
    this.#cancel()
    this.#due = due
    this.#cancel = clock.after(delay, () => this.#keepAll(), true)
  }

  #keepAll(): void {
    this.#due = Number.POSITIVE_INFINITY
    const claims = [...this.#watched.values()]
    if (claims.length === 0) return
    this.#keepWithin(Math.min(...claims.map(({ ttl }) => positionLifetime(ttl))) / 3)
    const waiting = Map.groupBy(claims, ({ id }) => this.#groups.of(id))
    for (const [group, kept] of waiting) void this.#keep(group, kept)
    // Without its session, a waiter that is granted the name would first have to open one.
    for (const [group, later] of Map.groupBy(claims, ({ ttl }) => this.#groups.for(ttl))) {
      if (waiting.has(group)) continue // attaching it again would lose the notifications of its waiters
      const longest = Math.max(...later.map(({ ttl }) => ttl))
      group.connection(longest, longest).catch(() => {}) // the next request of a claim reports the reason
    }
  }

  /** Wakes the claims that have no position, and those that were woken and have not asked. */
  async #keep(group: Group | undefined, claims: readonly Claim[]): Promise<void> {
    for (const claim of claims) group?.positions.keep(claim)
    const lost = await (group && this.#lostIn(group, claims))?.catch(() => undefined)
    for (const { id } of claims) if (!lost || lost.has(id) || !group?.isWaiting(id)) this.#wake(id)
  }

  /**
   * Keeps the session, and so the positions of its waiters. Resolves to the ids of claims whose nodes others have deleted.
   */
  async #lostIn(group: Group, claims: readonly Claim[]): Promise<ReadonlySet<string>> {
    const { paths } = this.#settings
    const connection = await group.connection(0)
    // A transaction also renews the session for its holders. The reads after it see a state that is at least as new.
    await group.send(connection, multi([checkStep(paths.root)]))
    const lost = new Set<string>()
    const nodes = claims.flatMap(({ name, id }) => {
      const node = group.positions.get(id)?.node
      return node ? [{ id, node, path: paths.node(name, node.name) }] : []
    })
    // The requests run one after the other, so that each one blocks the server only briefly.
    while (nodes.length > 0) {
      const some = nodes.splice(0, MOST_READ)
      const found = await group.send(connection, readAll(some.map(({ path }) => path)))
      for (const [index, { id, node }] of some.entries())
        if (found[index]?.error === code.noNode && group.positions.get(id)?.node === node) lost.add(id)
    }
    return lost
  }
}

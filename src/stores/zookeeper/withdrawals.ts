import type { ClaimKey } from '../../contract/store.ts'
import { LONGEST_REQUEST } from '../../contract/time.ts'
import type { Connection } from './connection.ts'
import { isRefused } from './failure.ts'
import { type Node, Queue, tombstone } from './nodes.ts'
import type { Parents } from './parents.ts'
import { code, create, getChildren, type Request, remove } from './protocol.ts'
import type { Queues } from './queues.ts'
import { MAX_ATTEMPTS, tooManyChanges } from './retries.ts'
import type { Settings } from './settings.ts'
import { Tombstones } from './tombstones.ts'

interface Claims {
  readonly queues: Queues
  send<Answer>(connection: Connection, request: Request<Answer>): Promise<Answer>
  delete(connection: Connection, name: string, nodes: readonly Node[]): Promise<boolean>
}

/** The withdrawals of one session, and the tombstones that record them. */
export class Withdrawals {
  readonly #settings: Settings
  readonly #parents: Parents
  readonly #claims: Claims
  readonly #tombstones = new Tombstones()

  constructor(settings: Settings, parents: Parents, claims: Claims) {
    this.#settings = settings
    this.#parents = parents
    this.#claims = claims
  }

  /**
   * Deletes all nodes of a claim, in any session. If there were none, a tombstone of this withdrawal refuses those that
   * arrive within 5 s. It is created before the nodes are read, so that none is missed.
   */
  async withdraw(connection: Connection, { name, id }: ClaimKey): Promise<'released' | 'gone'> {
    const { paths, acl, clock } = this.#settings
    const path = paths.node(name, tombstone(id))
    const reading = this.#claims.send(connection, getChildren(paths.name(name))).then(
      ({ children }) => new Queue(children),
      error => {
        if (isRefused(error, code.noNode)) return new Queue([])
        throw error
      },
    )
    reading.catch(() => {}) // the first failure is reported
    this.#tombstones.add(path, clock.now() + LONGEST_REQUEST) // its answer may be lost
    const look = (): Promise<Queue> => this.#claims.queues.look(connection, name)
    const [created, seen] = await this.#parents.make(connection, name, create(path, '', acl, 'ephemeral'), look)
    if (created.status === 'rejected') throw created.reason
    if (seen.status === 'rejected') throw seen.reason
    let nodes = seen.value.of(id)
    let isDeleted = false
    for (let attempt = 0; nodes.length > 0 && !isDeleted; attempt++) {
      if (attempt === MAX_ATTEMPTS) throw tooManyChanges(name)
      isDeleted = await this.#claims.delete(connection, name, nodes)
      if (!isDeleted) nodes = (await look()).of(id) // the claim may have another node now
    }
    // A node that a claim creates after its withdrawal is not a position.
    if (!isDeleted || (await reading).isWithdrawn(id)) return 'gone'
    this.#tombstones.end(path)
    await this.#claims.send(connection, remove(path)).catch(() => {}) // the next sweep tries again
    return 'released'
  }

  /** Deletes the nodes that are no longer needed. */
  sweep(connection: Connection): void {
    this.#tombstones.sweep(this.#settings.clock.now(), path => this.#claims.send(connection, remove(path)))
  }
}

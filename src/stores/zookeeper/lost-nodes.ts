import type { Connection } from './connection.ts'
import { isRefused } from './failure.ts'
import type { Node } from './nodes.ts'
import type { Paths } from './paths.ts'
import type { Position } from './position.ts'
import { isWithdrawn, type Positions } from './positions.ts'
import { code, exists } from './protocol.ts'
import type { Queues } from './queues.ts'

interface Claims {
  readonly positions: Positions
  readonly queues: Queues
  readonly session: { readonly id: bigint }
  delete(connection: Connection, name: string, nodes: readonly Node[]): Promise<boolean>
}

/** Finds the nodes of claims whose answers were lost. */
export class LostNodes {
  readonly #paths: Paths
  readonly #claims: Claims

  constructor(paths: Paths, claims: Claims) {
    this.#paths = paths
    this.#claims = claims
  }

  /** Afterwards the position has the one node of its claim. A claim without a node in this session is forgotten. */
  async find(connection: Connection, position: Position): Promise<void> {
    const { name, id } = position
    const nodes = (await this.#claims.queues.look(connection, name)).of(id)
    if (isWithdrawn(position)) await this.#claims.delete(connection, name, nodes)
    if (isWithdrawn(position)) return this.#claims.positions.forget(position)
    const own = await this.#own(connection, name, nodes)
    // The first node counts, whichever session it belongs to.
    const first = own[0]?.node === nodes[0] ? own.shift() : undefined
    const others = own.map(each => each.node)
    await this.#claims.delete(connection, name, others).catch(unlessRefused)
    if (first) Object.assign(position, first)
    else this.#claims.positions.forget(position)
  }

  /** The nodes among these that belong to this session. */
  async #own(connection: Connection, name: string, nodes: readonly Node[]): Promise<{ node: Node; czxid: bigint }[]> {
    const found = await Promise.all(
      nodes.map(async node => {
        const stat = await connection.send(exists(this.#paths.node(name, node.name))).catch(error => {
          if (isRefused(error, code.noNode)) return undefined
          throw error
        })
        return stat?.owner === this.#claims.session.id ? [{ node, czxid: stat.czxid }] : []
      }),
    )
    return found.flat()
  }

  /** Finds the node of an abandoned claim, which the next sweep deletes. A claim without a node is forgotten. */
  async locate(connection: Connection, position: Position): Promise<void> {
    const { name, id, until } = position
    const queue = await this.#claims.queues.look(connection, name)
    const [own] = await this.#own(connection, name, queue.of(id))
    if (position.until !== until || position.node) return // it has asked again
    if (own) Object.assign(position, own)
    else this.#claims.positions.forget(position)
  }
}

/** Ignores an error response about one name, so that it does not keep the session from its other requests. */
export function unlessRefused(error: unknown): void {
  if (!isRefused(error)) throw error
}

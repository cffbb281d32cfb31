import type { Clock } from '../../contract/time.ts'
import type { Connection } from './connection.ts'
import type { LostNodes } from './lost-nodes.ts'
import type { Node } from './nodes.ts'
import type { Position } from './position.ts'
import { NOTHING, type Positions } from './positions.ts'
import type { Watches } from './watches.ts'
import type { Withdrawals } from './withdrawals.ts'

interface Claims {
  readonly session: { readonly timeout: number }
  readonly positions: Positions
  readonly watches: Watches
  readonly withdrawals: Withdrawals
  delete(connection: Connection, name: string, nodes: readonly Node[]): Promise<boolean>
}

/** Deletes the nodes of abandoned claims. If a node is unknown, one sweep finds it and the next one deletes it. */
export class Sweep {
  readonly #clock: Clock
  readonly #claims: Claims
  readonly #lost: LostNodes
  readonly #lose: (id: string) => void
  #at = 0

  constructor(clock: Clock, claims: Claims, lost: LostNodes, lose: (id: string) => void) {
    this.#clock = clock
    this.#claims = claims
    this.#lost = lost
    this.#lose = lose
  }

  /** Sweeps at most once in every sixteenth of the session's length. */
  run(connection: Connection): void {
    const now = this.#clock.now()
    if (now < this.#at) return
    const { session, positions, withdrawals } = this.#claims
    this.#at = now + session.timeout / 16
    for (const position of positions.lapsed()) {
      // A forward step of the wall clock counts as sleep, but starts no timer of the holder.
      if (position.token !== undefined) this.#lose(position.id)
      const cleared = position.node
        ? this.#clear(connection, position, position.node)
        : this.#lost.locate(connection, position)
      cleared.catch(() => {}) // the next sweep tries again
    }
    withdrawals.sweep(connection)
  }

  /** Deletes the node of an abandoned claim. There may be another one, which the next sweep looks for. */
  async #clear(connection: Connection, position: Position, node: Node): Promise<void> {
    const { watches } = this.#claims
    await this.#claims.delete(connection, position.name, [node])
    if (position.node !== node) return // the claim has asked again
    watches.forget(position.id)
    Object.assign(position, NOTHING)
    if (position.watch?.aborted === false) watches.wake(position.id, 0) // a step of the wall clock woke none of its timers
  }
}

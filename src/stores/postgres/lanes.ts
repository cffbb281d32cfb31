import { Connection, type Patience, type Server, type Work } from '../link/connection.ts'
import type { Session } from './session.ts'

/**
 * Two connections: while the server writes a transaction of one to its disk, it carries out one of the other. The second
 * is opened only when something is to be sent while the first is busy.
 */
export class Lanes {
  readonly #first: Connection<Session>
  readonly #second: Connection<Session>

  constructor(server: Server<Session>) {
    this.#first = new Connection(server)
    this.#second = new Connection(server)
  }

  /** As `carryOut` of the connection that has less to do. */
  carryOut<Answer>(work: Work<Session, Answer>, patience?: Patience): Promise<Answer> {
    const connection = this.#second.load < this.#first.load ? this.#second : this.#first
    return connection.carryOut(work, patience)
  }

  close(): void {
    this.#first.close()
    this.#second.close()
  }
}

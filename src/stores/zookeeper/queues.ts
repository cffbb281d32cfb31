import type { Connection } from './connection.ts'
import { isRefused } from './failure.ts'
import { Queue } from './nodes.ts'
import type { Paths } from './paths.ts'
import { checkStep, code, getChildren, multi, type Request } from './protocol.ts'

type Send = <Answer>(connection: Connection, request: Request<Answer>) => Promise<Answer>

/** Reads the queues of names. */
export class Queues {
  readonly #paths: Paths
  readonly #send: Send
  /** Reads that leave at the end of this turn of the event loop. */
  readonly #looks = new Map<string, Promise<Queue>>()

  constructor(paths: Paths, send: Send) {
    this.#paths = paths
    this.#send = send
  }

  /** The queue of the name, after everything that was sent before. Calls in one turn of the event loop share an answer. */
  look(connection: Connection, name: string): Promise<Queue> {
    const shared = this.#looks.get(name)
    if (shared) return shared
    const look = new Promise<Queue>((resolve, reject) => {
      process.nextTick(() => {
        this.#looks.delete(name)
        this.#look(connection, name).then(resolve, reject)
      })
    })
    this.#looks.set(name, look)
    return look
  }

  /** As `look`, but linearizable: it includes what any client did before the call. */
  async lookAtNewest(connection: Connection, name: string): Promise<Queue> {
    // Only a transaction passes through the leader and a majority. A read after it is no older.
    const barrier = multi([checkStep(this.#paths.root)])
    const [, queue] = await Promise.all([this.#send(connection, barrier), this.look(connection, name)])
    return queue
  }

  async #look(connection: Connection, name: string): Promise<Queue> {
    try {
      const { children, stat } = await this.#send(connection, getChildren(this.#paths.name(name)))
      return new Queue(children, stat.mzxid, `${stat.czxid} ${stat.aclVersion}`)
    } catch (error) {
      if (isRefused(error, code.noNode)) return new Queue([], 0n) // the name was never used
      throw error
    }
  }
}

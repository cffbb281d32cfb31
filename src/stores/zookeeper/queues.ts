import type { Connection } from './connection.ts'
import { isRefused } from './failure.ts'
import { Queue } from './nodes.ts'
import type { Paths } from './paths.ts'
import { checkStep, code, getChildren, getData, multi, type Request } from './protocol.ts'
import { passedIn } from './record.ts'
import { MAX_ATTEMPTS, tooManyChanges } from './retries.ts'

type Send = <Answer>(connection: Connection, request: Request<Answer>) => Promise<Answer>

/** Reads the queues of names. */
export class Queues {
  readonly #paths: Paths
  readonly #send: Send
  /** Reads that are sent at the end of this turn of the event loop. */
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
        this.read(connection, name).then(resolve, reject)
      })
    })
    this.#looks.set(name, look)
    return look
  }

  /** Like `look`, but linearizable: the answer includes what any client did before the call. */
  async lookAtNewest(connection: Connection, name: string): Promise<Queue> {
    // Only a transaction passes through the leader and a majority. A read after it sees a state that is at least as new.
    const barrier = multi([checkStep(this.#paths.root)])
    const [, queue] = await Promise.all([this.#send(connection, barrier), this.look(connection, name)])
    return queue
  }

  /** Like `look`, but sends the request at once and does not share its answer. */
  async read(connection: Connection, name: string): Promise<Queue> {
    const path = this.#paths.name(name)
    try {
      for (let attempt = 0; attempt < MAX_ATTEMPTS; attempt++) {
        // Both in one round trip: a waiter that is far away reads and takes the name within its grace period.
        const [{ children, stat }, { data, stat: after }] = await Promise.all([
          this.#send(connection, getChildren(path)),
          this.#send(connection, getData(path)),
        ])
        const { mzxid: mark, version, czxid, aclVersion, pzxid: changed } = stat
        if (after.mzxid !== mark) continue
        const identity = `${czxid} ${aclVersion}`
        return new Queue(children, { mark, version, passed: passedIn(data), identity, changed })
      }
    } catch (error) {
      if (isRefused(error, code.noNode)) return new Queue([]) // nobody has used the name
      throw error
    }
    throw tooManyChanges(name)
  }
}

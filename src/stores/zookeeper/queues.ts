import type { Connection } from './connection.ts'
import { isRefused } from './failure.ts'
import { Queue } from './nodes.ts'
import type { Paths } from './paths.ts'
import { checkStep, code, getChildren, getData, multi, type Request } from './protocol.ts'
import { passedIn } from './record.ts'
import { MAX_ATTEMPTS, tooManyChanges } from './retries.ts'

type Send = <Answer>(connection: Connection, request: Request<Answer>) => Promise<Answer>

/** A read that is sent at the end of this turn of the event loop. */
interface Look {
  hasWaiters: boolean
  readonly queue: Promise<Queue>
}

/**
 * Reads the queues of names. `hasWaiters`: is it known that the name has waiters? Then the data of the name is read in the
 * same round trip, so that a waiter far away reads and takes the name within its grace period. Otherwise it is read only if
 * there are waiters, because each request takes time of the server.
 */
export class Queues {
  readonly #paths: Paths
  readonly #send: Send
  readonly #looks = new Map<string, Look>()

  constructor(paths: Paths, send: Send) {
    this.#paths = paths
    this.#send = send
  }

  /** The queue of the name, after everything that was sent before. Calls in one turn of the event loop share an answer. */
  look(connection: Connection, name: string, hasWaiters = false): Promise<Queue> {
    const shared = this.#looks.get(name)
    if (shared) {
      shared.hasWaiters ||= hasWaiters
      return shared.queue
    }
    const queue = new Promise<Queue>((resolve, reject) => {
      process.nextTick(() => {
        this.#looks.delete(name)
        this.#read(connection, name, look.hasWaiters).then(resolve, reject)
      })
    })
    const look = { hasWaiters, queue }
    this.#looks.set(name, look)
    return queue
  }

  /** Like `look`, but linearizable: the answer includes what any client did before the call. */
  async lookAtNewest(connection: Connection, name: string, hasWaiters = false): Promise<Queue> {
    // Only a transaction passes through the leader and a majority. A read after it sees a state that is at least as new.
    const barrier = multi([checkStep(this.#paths.root)])
    const [, queue] = await Promise.all([this.#send(connection, barrier), this.look(connection, name, hasWaiters)])
    return queue
  }

  async #read(connection: Connection, name: string, hasWaiters: boolean): Promise<Queue> {
    const path = this.#paths.name(name)
    try {
      for (let [attempt, needsData] = [0, hasWaiters]; attempt < MAX_ATTEMPTS; attempt++) {
        const [{ children, stat }, found] = await Promise.all([
          this.#send(connection, getChildren(path)),
          needsData ? this.#send(connection, getData(path)) : undefined,
        ])
        const { mzxid: mark, version, czxid, aclVersion, pzxid: changed } = stat
        const parent = { mark, version, identity: `${czxid} ${aclVersion}`, changed }
        if (found?.stat.mzxid === mark) return new Queue(children, { ...parent, passed: passedIn(found.data) })
        // Only waiters can have been passed.
        needsData = stat.length > 0 && children.some(child => child.startsWith('w'))
        if (!needsData) return new Queue(children, { ...parent, passed: [] })
      }
    } catch (error) {
      if (isRefused(error, code.noNode)) return new Queue([]) // nobody has used the name
      throw error
    }
    throw tooManyChanges(name)
  }
}

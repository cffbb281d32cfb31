import { NEVER } from '../wire/timeouts.ts'
import type { Connection } from './connection.ts'
import { isRefused } from './failure.ts'
import type { Paths } from './paths.ts'
import { type Acl, CREATE, code, create, createContainer, READ, type Request } from './protocol.ts'

/** The largest number of names whose nodes are remembered to exist. */
const MOST_NAMES = 10_000

const OTHERS: Acl = { permissions: READ | CREATE, scheme: 'world', id: 'anyone' }

type Send = (connection: Connection, request: Request<unknown>) => Promise<unknown>

/** Creates missing parents of the nodes of claims. */
export class Parents {
  readonly #paths: Paths
  readonly #acl: Acl
  readonly #send: Send
  readonly #known = new Set<string>()

  constructor(paths: Paths, acl: Acl, send: Send) {
    this.#paths = paths
    this.#acl = acl
    this.#send = send
  }

  /**
   * Sends `request`, which creates a node of a claim. Before it, creates the node of its name, unless that is known to
   * exist. If all parents are missing, it creates them and tries again, unless `signal` aborts: a withdrawal may have
   * looked for the node by then. `alongside` is sent after it each time. If this rejects `Refused`, nothing was created.
   */
  async make<Made, Also>(
    connection: Connection,
    name: string,
    request: Request<Made>,
    alongside: () => Promise<Also>,
    signal: AbortSignal = NEVER,
  ): Promise<[PromiseSettledResult<Made>, PromiseSettledResult<Also>]> {
    for (let attempt = 0; ; attempt++) {
      signal.throwIfAborted()
      const making = this.#makeName(connection, name)
      const creating = this.#send(connection, request) as Promise<Made>
      const [made, created, also] = await Promise.allSettled([making, creating, alongside()])
      const isMissing = created.status === 'rejected' && isRefused(created.reason, code.noNode)
      // A server without container nodes reports this, and closes the connection before it answers the other requests.
      if (made.status === 'rejected' && isRefused(made.reason, code.unimplemented)) throw made.reason
      if (!isMissing || attempt > 1) return [created, also]
      this.#known.delete(name)
      if (made.status === 'rejected') await this.#makeFolders(connection, made.reason)
    }
  }

  clear(): void {
    this.#known.clear()
  }

  async #makeName(connection: Connection, name: string): Promise<void> {
    if (this.#known.has(name)) return
    if (this.#known.size >= MOST_NAMES) this.clear()
    this.#known.add(name)
    await unlessThere(this.#send(connection, createContainer(this.#paths.name(name), this.#acl)))
  }

  /** Above the chroot other users may create nodes too, whichever user created the folder. */
  #aclOf(folder: string): Acl | readonly Acl[] {
    return this.#paths.shared.includes(folder) ? [this.#acl, OTHERS] : this.#acl
  }

  async #makeFolders(connection: Connection, reason: unknown): Promise<void> {
    if (!isRefused(reason, code.noNode)) throw reason
    let refused: Error | undefined
    for (const folder of this.#paths.folders) {
      try {
        await unlessThere(this.#send(connection, create(folder, '', this.#aclOf(folder), 'persistent')))
        refused = undefined
      } catch (error) {
        if (refused && isRefused(error, code.noNode)) throw refused
        // A user who may not create the folder is also refused if it exists, and may still have all rights below it.
        if (!isRefused(error, code.noAuth)) throw error
        refused = error as Error
      }
    }
    if (refused) throw refused
  }
}

async function unlessThere(creating: Promise<unknown>): Promise<void> {
  try {
    await creating
  } catch (error) {
    if (!isRefused(error, code.nodeExists)) throw error
  }
}

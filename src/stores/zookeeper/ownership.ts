import { unfit } from '../wire/failure.ts'
import type { Connection } from './connection.ts'
import { Refused } from './failure.ts'
import type { Group } from './group.ts'
import type { Node, Queue } from './nodes.ts'
import type { Settings } from './place.ts'
import { type Acl, code, getAcl, READ } from './protocol.ts'

const MOST_NAMES = 10_000

/** With `auth`: checks that the permissions of existing nodes let nobody else end a lease. */
export class Ownership {
  readonly #settings: Settings
  /** For each name whose node belongs to this user: the version that was checked. */
  readonly #known = new Map<string, string>()

  constructor(settings: Settings) {
    this.#settings = settings
  }

  /**
   * Rejects STORE_UNAVAILABLE if others may change the prefix or the node of the name. `node` is the claim's node, which the
   * session of `group` created; `queue` was read after that. While `node` exists the node of the name cannot be replaced. So
   * the permissions read here stay true: only this user may change them.
   */
  async check(group: Group, connection: Connection, name: string, node: Node, queue: Queue): Promise<void> {
    const { ensemble, paths } = this.#settings
    if (!ensemble.auth || this.#known.get(name) === queue.parent.identity) return
    const above = [paths.root, paths.name(name)]
    const [own, ...found] = await Promise.all(
      [paths.node(name, node.name), ...above].map(path => group.send(connection, getAcl(path))),
    )
    if (own?.stat.owner !== group.session.id) throw new Refused(code.noNode) // deleted, and created by another user
    const users = new Set(own.acl.map(userOf))
    for (const [index, { acl }] of found.entries()) {
      if (acl.every(entry => entry.permissions === READ || users.has(userOf(entry)))) continue
      const path = above[index]
      throw unfit(
        `others may change ${path} (its permissions are ${acl.map(show).join(', ')}), and so end leases: ` +
          `run "addauth digest ${ensemble.auth.user}:<password>" and "setAcl -R ${path} auth::cdrwa" in zkCli.sh`,
      )
    }
    if (this.#known.size >= MOST_NAMES) this.#known.clear()
    this.#known.set(name, queue.parent.identity)
  }
}

function userOf({ scheme, id }: Acl): string {
  return `${scheme}:${id}`
}

/** In the format of zkCli.sh, but without the hash of a password. */
function show({ permissions, scheme, id }: Acl): string {
  const letters = 'cdrwa'.replace(/./g, letter => (permissions & (1 << 'rwcda'.indexOf(letter)) ? letter : ''))
  return `${scheme}:${scheme === 'digest' ? id.replace(/:.*/s, '') : id}:${letters}`
}

import { unfit } from '../wire/failure.ts'
import type { Connection } from './connection.ts'
import { Refused } from './failure.ts'
import type { Group } from './group.ts'
import type { Node, Queue } from './nodes.ts'
import { type Acl, code, getAcl, READ } from './protocol.ts'
import type { Settings } from './settings.ts'

const MOST_NAMES = 10_000

/** With the option `auth`, checks that the permissions of existing nodes let no other user end a lease. */
export class Ownership {
  readonly #settings: Settings
  /** The version of the node that was checked, for each name whose node belongs to this user. */
  readonly #known = new Map<string, string>()

  constructor(settings: Settings) {
    this.#settings = settings
  }

  /**
   * Rejects STORE_UNAVAILABLE if others may change the prefix or the node of the name. `node` is the claim's node, created
   * in the session of `group`; `queue` was read after that. While `node` exists, nobody can replace the node of the name.
   * So the permissions that were read stay true: only this user may change them.
   */
  async check(group: Group, connection: Connection, name: string, node: Node, queue: Queue): Promise<void> {
    const { ensemble, paths } = this.#settings
    if (!ensemble.auth || this.#known.get(name) === queue.parent.identity) return
    const above = [paths.root, paths.name(name)]
    const [own, ...found] = await Promise.all(
      [paths.node(name, node.name), ...above].map(path => group.send(connection, getAcl(path))),
    )
    if (own?.stat.owner !== group.session.id) throw new Refused(code.noNode) // it was deleted, and another user created it
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

/** Shows an entry in the format of zkCli.sh, without the hash of a password. */
function show({ permissions, scheme, id }: Acl): string {
  const letters = 'cdrwa'.replace(/./g, letter => (permissions & (1 << 'rwcda'.indexOf(letter)) ? letter : ''))
  return `${scheme}:${scheme === 'digest' ? id.replace(/:.*/s, '') : id}:${letters}`
}

import { randomUUID } from 'node:crypto'
import type { Connection } from '../../stores/zookeeper/connection.ts'
import { isRefused } from '../../stores/zookeeper/failure.ts'
import { type Acl, code, create, getAcl, getChildren, READ } from '../../stores/zookeeper/protocol.ts'
import { counted } from '../counted.ts'
import { type Finding, ok, problem } from './finding.ts'
import { TRIED } from './trial.ts'

const ID = 'zookeeper-acl'

/** The most names whose permissions are read. */
const MOST_NAMES = 1_000

/** The permissions that leases need: to read, to write, to create and to delete. */
const NEEDED = 15

/** The permissions of the node at a path. */
interface Access {
  readonly path: string
  /** `undefined`: this client may not read them. */
  readonly acl: readonly Acl[] | undefined
}

/** Finds who may change the node at `root` and the names below it. `user`: the user in the URL. */
export async function access(connection: Connection, root: string, user: string | undefined): Promise<Finding> {
  const top = await accessTo(connection, root)
  if (top === undefined) return judge([], [], user, 0)
  const ids = user === undefined ? [] : await ownIds(connection, root)
  const children = (await unlessRefused(connection.send(getChildren(root))))?.children ?? []
  // The server removes what a refused trial has left.
  const paths = children.filter(name => !name.startsWith(TRIED)).map(name => `${root}/${name}`)
  const found = await Promise.all(paths.slice(0, MOST_NAMES).map(path => accessTo(connection, path)))
  const all = [top, ...found.filter(each => each !== undefined)]
  return judge(all, ids, user, Math.max(0, paths.length - MOST_NAMES))
}

/** The ids of the connection's user, as permissions name it. They are read from a node that ends with the session. */
async function ownIds(connection: Connection, root: string): Promise<string[]> {
  const path = `${root}/${TRIED}${randomUUID()}`
  const own = { permissions: 31, scheme: 'auth', id: '' }
  if (!(await unlessRefused(connection.send(create(path, '', own, 'ephemeral'))))) return []
  const { acl } = await connection.send(getAcl(path))
  return acl.map(idOf)
}

function idOf({ scheme, id }: Acl): string {
  return `${scheme}:${id}`
}

function judge(all: readonly Access[], ids: readonly string[], user: string | undefined, unread: number): Finding {
  const own = (entry: Acl): boolean => ids.includes(idOf(entry))
  const closed = all.filter(({ acl }) => !mayChange(acl, own))
  if (closed.length > 0) {
    const what = `${user === undefined ? 'a client without a user' : 'this user'} may not change ${some(closed)}`
    const cure = 'let its owner run setAcl there in zkCli.sh'
    const advice = user === undefined ? `write user:password@ into the URL, or ${cure}` : cure
    return problem(ID, what, 'those names cannot be acquired', advice)
  }
  const open = user === undefined ? [] : all.filter(({ acl = [] }) => acl.some(entry => changes(entry) && !own(entry)))
  if (open.length > 0) {
    const why = 'others can end their leases, so acquiring those names is refused'
    const advice = `run "addauth digest ${user}:<password>" and "setAcl -R ${all[0]?.path} auth::cdrwa" in zkCli.sh`
    return problem(ID, `others may change ${some(open)}`, why, advice)
  }
  const rest = unread > 0 ? `; ${counted(unread, 'more name was', 'more names were')} not looked at` : ''
  if (user !== undefined) return ok(ID, `only the user of the URL can change leases${rest}`)
  return ok(
    ID,
    `every client of the servers can change leases; with user:password@ in the URL of all clients, none can${rest}`,
  )
}

/** May this client do what leases need, by all entries that may be meant for it? */
function mayChange(acl: readonly Acl[] | undefined, own: (entry: Acl) => boolean): boolean {
  if (acl === undefined) return false
  // An entry for an address or a certificate may mean this client.
  const meant = acl.filter(entry => entry.scheme !== 'digest' || own(entry))
  const permissions = meant.reduce((all, entry) => all | entry.permissions, 0)
  return (permissions & NEEDED) === NEEDED
}

function changes({ permissions }: Acl): boolean {
  return permissions !== READ
}

/** A text for people: the first path, and how many nodes there are. */
function some(all: readonly Access[]): string {
  const [first] = all
  return all.length === 1 ? `${first?.path}` : `${all.length} nodes, such as ${first?.path}`
}

/** Reads the permissions of a node. `undefined`: there is no such node. */
async function accessTo(connection: Connection, path: string): Promise<Access | undefined> {
  try {
    return { path, acl: (await unlessRefused(connection.send(getAcl(path))))?.acl }
  } catch (error) {
    if (isRefused(error, code.noNode)) return undefined
    throw error
  }
}

/** Resolves to the answer. `undefined`: this client may not read it. */
async function unlessRefused<Answer>(answer: Promise<Answer>): Promise<Answer | undefined> {
  return answer.catch((error: unknown) => {
    if (!isRefused(error, code.noAuth)) throw error
    return undefined
  })
}

import type { ClaimKey, LeaseRecord } from '../../contract/store.ts'
import type { Connection } from './connection.ts'
import { isRefused } from './failure.ts'
import type { Group } from './group.ts'
import type { Node } from './nodes.ts'
import { decode, type Paths } from './paths.ts'
import type { Held } from './place.ts'
import { code, getChildren, getData, type Stat, sync } from './protocol.ts'
import { detailsOf, recordOf } from './record.ts'
import { MAX_ATTEMPTS, tooManyChanges } from './retries.ts'

/** All names with the prefix that have or recently had claims, sorted. */
export async function namesFrom(group: Group, { root }: Paths, prefix: string): Promise<string[]> {
  const connection = await group.connection(0)
  try {
    const [, { children }] = await Promise.all([
      group.send(connection, sync(root)),
      group.send(connection, getChildren(root)),
    ])
    const names = children.map(decode).filter(name => name !== undefined)
    return names.filter(name => name.startsWith(prefix)).sort()
  } catch (error) {
    if (isRefused(error, code.noNode)) return []
    throw error
  }
}

/** Holders and waiters of these names. */
export async function lookAt(group: Group, paths: Paths, names: readonly string[]): Promise<LeaseRecord[]> {
  const connection = await group.connection(0)
  const synced = group.send(connection, sync(paths.root))
  const looks = names.map(async name => {
    for (let attempt = 0; attempt < MAX_ATTEMPTS; attempt++) {
      const { nodes, holder } = await group.queues.look(connection, name)
      const records = await recordsOf(group, connection, paths, name, nodes)
      // The node was gone, perhaps because the lease moved to another session.
      if (!holder || records[0]?.state === 'held') return records
    }
    throw tooManyChanges(name)
  })
  const [records] = await Promise.all([Promise.all(looks), synced])
  return records.flat()
}

/** The records of the first nodes of a queue, without those that are gone by now. */
export async function recordsOf(
  group: Group,
  connection: Connection,
  paths: Paths,
  name: string,
  nodes: readonly Node[],
): Promise<LeaseRecord[]> {
  const waitsFrom = nodes[0]?.kind === 'h' ? 1 : 0
  const read = async (node: Node, index: number): Promise<LeaseRecord | undefined> => {
    const found = await dataAt(group, connection, paths.node(name, node.name))
    return found && recordOf(name, node, index - waitsFrom, found.data, found.stat)
  }
  return (await Promise.all(nodes.map(read))).filter(record => record !== undefined)
}

/** The node by which a claim holds, of any session. */
export async function leaseOf(
  group: Group,
  connection: Connection,
  paths: Paths,
  { name, id }: ClaimKey,
): Promise<Held | undefined> {
  for (let attempt = 0; attempt < MAX_ATTEMPTS; attempt++) {
    const { holder, mark } = await group.queues.lookAtNewest(connection, name)
    if (holder?.id !== id) return undefined
    const held = await heldBy(group, connection, paths, name, holder)
    if (held) return held.token < mark ? undefined : held
  }
  throw tooManyChanges(name)
}

/** The content of a node that may hold. `undefined` if it is gone. */
export async function heldBy(
  group: Group,
  connection: Connection,
  paths: Paths,
  name: string,
  node: Node,
): Promise<Held | undefined> {
  const found = await dataAt(group, connection, paths.node(name, node.name))
  if (!found) return undefined
  const { version, czxid } = found.stat
  return { node, token: node.token ?? czxid, version, ...detailsOf(found.data) }
}

async function dataAt(
  group: Group,
  connection: Connection,
  path: string,
): Promise<{ data: string; stat: Stat } | undefined> {
  try {
    return await group.send(connection, getData(path))
  } catch (error) {
    if (isRefused(error, code.noNode)) return undefined
    throw error
  }
}

import type { ClaimKey, LeaseRecord } from '../../contract/store.ts'
import type { Connection } from './connection.ts'
import { isRefused } from './failure.ts'
import type { Group, Held } from './group.ts'
import type { Node } from './nodes.ts'
import { decode, type Paths } from './paths.ts'
import { code, getChildren, getData, type Stat, sync } from './protocol.ts'
import { detailsOf, recordOf } from './record.ts'
import { MOST_TRIES, restless } from './tries.ts'

/** All names that begin with `prefix` and were held or waited for a while ago, sorted. */
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
    for (let tries = 0; tries < MOST_TRIES; tries++) {
      const { nodes, holder } = await group.look(connection, name)
      const records = await recordsOf(group, connection, paths, name, nodes)
      // Else its node was gone by then, perhaps since the lease moved to another session.
      if (!holder || records[0]?.state === 'held') return records
    }
    throw restless(name)
  })
  const [records] = await Promise.all([Promise.all(looks), synced])
  return records.flat()
}

/** Of the first nodes of a line; those that are gone by now are left out. */
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

/** The node by which a claim holds now, wherever it was put. */
export async function leaseOf(
  group: Group,
  connection: Connection,
  paths: Paths,
  { name, id }: ClaimKey,
): Promise<Held | undefined> {
  for (let tries = 0; tries < MOST_TRIES; tries++) {
    const { holder, mark } = await group.lookAtNewest(connection, name)
    if (holder?.id !== id) return undefined
    const held = await heldBy(group, connection, paths, name, holder)
    if (held) return held.token < mark ? undefined : held
  }
  throw restless(name)
}

/** What a node that may hold says; `undefined` if it is gone. */
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

import type { ClaimKey, LeaseRecord } from '../../contract/store.ts'
import type { Connection } from './connection.ts'
import { isRefused } from './failure.ts'
import type { Group } from './group.ts'
import type { Node } from './nodes.ts'
import { decode, type Paths } from './paths.ts'
import type { Held } from './position.ts'
import { code, getChildren, getData, type Stat, sync } from './protocol.ts'
import { detailsOf, heldRecord, waiterRecord } from './record.ts'
import { MAX_ATTEMPTS, tooManyChanges } from './retries.ts'

interface Found {
  readonly data: string
  readonly stat: Stat
}

/** All names with the prefix that have claims or recently had claims, sorted. */
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

/** Reads the holders and waiters of these names. */
export async function lookAt(group: Group, paths: Paths, names: readonly string[]): Promise<LeaseRecord[]> {
  const connection = await group.connection(0)
  const synced = group.send(connection, sync(paths.root))
  const looks = names.map(async name => {
    const known = new Map<string, Found>()
    for (let attempt = 0; ; attempt++) {
      const queue = await group.queues.look(connection, name)
      const nodes = [...queue.holders.filter(({ id }) => !queue.isWithdrawn(id)), ...queue.waiters]
      const records = await recordsOf(group, connection, paths, name, nodes, known)
      // A node was gone: its claim was granted, moved to another session, or ended.
      if (records.length === nodes.length || attempt === MAX_ATTEMPTS) return records
    }
  })
  const [records] = await Promise.all([Promise.all(looks), synced])
  return records.flat()
}

/**
 * The records of the first nodes of a queue, without nodes that are gone by now. `known`: what was read before, by node.
 */
export async function recordsOf(
  group: Group,
  connection: Connection,
  paths: Paths,
  name: string,
  nodes: readonly Node[],
  known: Map<string, Found> = new Map(),
): Promise<LeaseRecord[]> {
  const read = async (node: Node): Promise<void> => {
    const found = known.has(node.name) ? undefined : await dataAt(group, connection, paths.node(name, node.name))
    if (found) known.set(node.name, found)
  }
  await Promise.all(nodes.map(read))
  const there = nodes.filter(node => known.has(node.name))
  const holding = there.filter(({ kind }) => kind !== 'w').length
  return there.map((node, index) => {
    const { data, stat } = known.get(node.name) as Found
    const details = detailsOf(data)
    if (index >= holding) return waiterRecord(name, node, index - holding, details)
    return heldRecord(name, node, node.token ?? stat.czxid, details)
  })
}

/** The node by which a claim holds, in any session. */
export async function leaseOf(
  group: Group,
  connection: Connection,
  paths: Paths,
  { name, id }: ClaimKey,
): Promise<Held | undefined> {
  for (let attempt = 0; attempt < MAX_ATTEMPTS; attempt++) {
    const { holders, parent } = await group.queues.lookAtNewest(connection, name)
    const node = holders.find(holder => holder.id === id)
    if (!node) return undefined
    const held = await heldBy(group, connection, paths, name, node)
    if (held) return node.kind === 'c' && held.token < parent.mark ? undefined : held
  }
  throw tooManyChanges(name)
}

/** The content of a node that may hold. `undefined`: the node is gone. */
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

async function dataAt(group: Group, connection: Connection, path: string): Promise<Found | undefined> {
  try {
    return await group.send(connection, getData(path))
  } catch (error) {
    if (isRefused(error, code.noNode)) return undefined
    throw error
  }
}

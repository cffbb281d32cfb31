import type { LeaseRecord } from '../../store.ts'
import type { Connection } from './connection.ts'
import { isRefused } from './failure.ts'
import type { Group } from './group.ts'
import type { Node } from './nodes.ts'
import { decode, type Paths } from './paths.ts'
import { code, exists, getChildren, getData, sync } from './protocol.ts'
import { recordOf } from './record.ts'

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
    const { nodes } = await group.look(connection, name)
    return recordsOf(group, connection, paths, name, nodes)
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
    try {
      const { data, stat } = await group.send(connection, getData(paths.node(name, node.name)))
      return recordOf(name, node, index - waitsFrom, data, stat)
    } catch (error) {
      if (isRefused(error, code.noNode)) return undefined
      throw error
    }
  }
  return (await Promise.all(nodes.map(read))).filter(record => record !== undefined)
}

/** The transaction that put a node; `undefined` if it is gone. */
export async function czxidOf(group: Group, connection: Connection, path: string): Promise<bigint | undefined> {
  try {
    return (await group.send(connection, exists(path))).czxid
  } catch (error) {
    if (isRefused(error, code.noNode)) return undefined
    throw error
  }
}

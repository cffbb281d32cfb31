import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { findBinary } from './binary.ts'
import { newPlace } from './process.ts'
import { fields, RedisServer } from './redis.ts'
import { until } from './until.ts'

export interface ClusterOptions {
  /** The password of the default user. */
  readonly password?: string | undefined
  /** Further lines of the configuration of a node. */
  readonly lines?: (() => Promise<readonly string[]>) | undefined
}

/** A Redis Cluster of three masters without replicas, each with a third of the slots. All nodes serve. */
export async function startCluster(options: ClusterOptions = {}): Promise<RedisCluster> {
  const { password } = options
  const nodes: RedisServer[] = []
  try {
    await Promise.all([1, 2, 3].map(() => startNode(nodes, options)))
    const cli = findBinary('redis-cli', 'redis-tools')
    const addresses = nodes.map(node => `${node.host}:${node.port}`)
    await promisify(execFile)(cli.path, ['--cluster', 'create', ...addresses, '--cluster-yes'], {
      env: { ...process.env, ...cli.env, ...(password && { REDISCLI_AUTH: password }) },
    })
    const cluster = new RedisCluster(nodes)
    await cluster.agreed()
    return cluster
  } catch (error) {
    await Promise.all(nodes.map(node => node.stop()))
    throw error
  }
}

async function startNode(nodes: RedisServer[], { password, lines: more }: ClusterOptions): Promise<RedisServer> {
  const place = await newPlace('cluster')
  const lines = [
    'save ""',
    'cluster-enabled yes',
    `cluster-port ${place.port.number + 10_000}`,
    'cluster-node-timeout 1000',
    ...(password ? [`requirepass ${password}`] : []),
    ...((await more?.()) ?? []),
  ]
  const node = new RedisServer(place, { lines, password })
  nodes.push(node)
  await node.start()
  return node
}

export class RedisCluster implements AsyncDisposable {
  readonly nodes: RedisServer[]

  constructor(nodes: RedisServer[]) {
    this.nodes = nodes
  }

  /** Adds a master without slots. */
  async add(): Promise<RedisServer> {
    const [known] = this.nodes as [RedisServer]
    const node = await startNode(this.nodes, {})
    await node.call('CLUSTER', 'MEET', known.host, known.port, known.port + 10_000)
    await this.agreed()
    return node
  }

  /** Waits until every node reports that the whole cluster serves. */
  async agreed(): Promise<void> {
    await until('cluster_state is ok on every node', async () => {
      const infos = await Promise.all(this.nodes.map(node => node.call('CLUSTER', 'INFO')))
      return infos.every(info => fields(info as string).cluster_state === 'ok')
    })
  }

  /**
   * Waits until `node` has heard of the epoch in which `owner` got its slots. A node that takes a slot sooner may do so in
   * an older epoch. It then loses the slot to a message of the owner that is still on its way, and no node has it.
   */
  async heard(node: RedisServer, owner: RedisServer): Promise<void> {
    const epochs = async (each: RedisServer): Promise<Record<string, string>> =>
      fields((await each.call('CLUSTER', 'INFO')) as string)
    await until('the node has heard of the epoch of the owner', async () => {
      const [{ cluster_current_epoch: known }, { cluster_my_epoch: own }] = [await epochs(node), await epochs(owner)]
      return Number(known) >= Number(own)
    })
  }

  /** The node that has this key, once all that run name the same: one may still hear of an earlier owner. */
  async nodeOf(key: string): Promise<RedisServer> {
    const running = this.nodes.filter(node => node.isRunning)
    const owner = await until('all nodes name one owner of the key', async () => {
      const owners = new Set(await Promise.all(running.map(node => ownerOf(key, node))))
      return owners.size === 1 ? [...owners][0] : undefined
    })
    const node = this.nodes.find(candidate => candidate.port === owner)
    if (!node) throw new Error(`no node has ${key}`)
    return node
  }

  async stop(): Promise<void> {
    await Promise.all(this.nodes.map(node => node.stop()))
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop()
  }
}

/** The port of the node that has this key, as `asked` knows it. */
async function ownerOf(key: string, asked: RedisServer): Promise<number | undefined> {
  const slot = (await asked.call('CLUSTER', 'KEYSLOT', key)) as number
  const ranges = (await asked.call('CLUSTER', 'SLOTS')) as [number, number, [string, number]][]
  return ranges.find(([first, last]) => first <= slot && slot <= last)?.[2][1]
}

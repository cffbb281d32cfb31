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

  /** The node that has this key. */
  async nodeOf(key: string): Promise<RedisServer> {
    const asked = this.nodes.find(node => node.isRunning)
    if (!asked) throw new Error('no node of the cluster runs')
    const slot = (await asked.call('CLUSTER', 'KEYSLOT', key)) as number
    const ranges = (await asked.call('CLUSTER', 'SLOTS')) as [number, number, [string, number]][]
    const port = ranges.find(([first, last]) => first <= slot && slot <= last)?.[2][1]
    const node = this.nodes.find(candidate => candidate.port === port)
    if (!node) throw new Error(`no node has slot ${slot}`)
    return node
  }

  async stop(): Promise<void> {
    await Promise.all(this.nodes.map(node => node.stop()))
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop()
  }
}

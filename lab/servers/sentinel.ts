import { newPlace } from './process.ts'
import { RedisServer, startRedis } from './redis.ts'
import { until } from './until.ts'

const QUORUM = 2

export interface SentinelOptions {
  /** The timeout after which a node counts as down, in milliseconds. @default 500 */
  readonly downAfter?: number
  /** The password of the default user of all servers, also of the sentinels. */
  readonly password?: string | undefined
  /** ACL rules of the nodes, one user each. */
  readonly users?: readonly string[] | undefined
}

/** A master, its replica and three sentinels that agree on them. */
export async function startSentinel(options: SentinelOptions = {}): Promise<SentinelSet> {
  const { downAfter = 500, password, users } = options
  const started: RedisServer[] = []
  try {
    const master = await startRedis({ password, users })
    started.push(master)
    // Before the sentinels, because they look for further replicas only every 10 s.
    const replica = await startRedis({ replicaOf: master, password, users })
    started.push(replica)
    const lines = [
      `sentinel monitor ${SentinelSet.group} ${master.host} ${master.port} ${QUORUM}`,
      `sentinel down-after-milliseconds ${SentinelSet.group} ${downAfter}`,
      // Also the time before the next vote after a tie.
      `sentinel failover-timeout ${SentinelSet.group} 1000`,
      ...(password ? [`sentinel auth-pass ${SentinelSet.group} ${password}`, `requirepass ${password}`] : []),
    ]
    const sentinels = [1, 2, 3].map(async () => {
      const sentinel = new RedisServer(await newPlace('sentinel'), { lines, password, isSentinel: true })
      started.push(sentinel)
      await sentinel.start()
      // By default they look for each other every 2 s.
      await sentinel.call('SENTINEL', 'DEBUG', 'PUBLISH-PERIOD', 50, 'INFO-PERIOD', 200)
      return sentinel
    })
    const set = new SentinelSet([master, replica], await Promise.all(sentinels))
    await set.agreed()
    return set
  } catch (error) {
    await Promise.all(started.map(server => server.stop()))
    throw error
  }
}

export class SentinelSet implements AsyncDisposable {
  /** The name of the master for clients. */
  static readonly group = 'holdfast'
  /** Both Redis nodes, whatever their current roles. */
  readonly nodes: readonly RedisServer[]
  readonly sentinels: readonly RedisServer[]

  constructor(nodes: readonly RedisServer[], sentinels: readonly RedisServer[]) {
    this.nodes = nodes
    this.sentinels = sentinels
  }

  /** The node that most sentinels call master. It may be down. */
  async master(): Promise<RedisServer> {
    const named = await Promise.all(this.sentinels.map(sentinel => this.#namedBy(sentinel)))
    const master = this.nodes.find(({ port }) => named.filter(other => other === port).length >= QUORUM)
    if (!master) throw new Error(`the sentinels disagree on the master: ${named.join(', ')}`)
    return master
  }

  /** The node that is not the master. */
  async replica(): Promise<RedisServer> {
    const master = await this.master()
    return this.nodes.find(node => node !== master) as RedisServer
  }

  /** Waits until the replica is in sync and all sentinels know it and each other, so that a failover can succeed. */
  async agreed(): Promise<void> {
    await until('the replica is in step, and every sentinel knows it and the others', async () => {
      for (const sentinel of this.sentinels) {
        const replicas = (await sentinel.call('SENTINEL', 'REPLICAS', SentinelSet.group)) as unknown[]
        const others = (await sentinel.call('SENTINEL', 'SENTINELS', SentinelSet.group)) as unknown[]
        await sentinel.call('SENTINEL', 'CKQUORUM', SentinelSet.group)
        if (replicas.length !== 1 || others.length !== this.sentinels.length - 1) return false
      }
      const { role, master_link_status } = await (await this.replica()).info('replication')
      return role === 'slave' && master_link_status === 'up'
    })
  }

  /**
   * Kills or pauses the master and waits until the sentinels have made the replica master, which is returned. The old
   * master may be restarted or resumed, and becomes a replica.
   */
  async failover(how: 'kill' | 'pause' = 'kill'): Promise<RedisServer> {
    const [master, replica] = [await this.master(), await this.replica()]
    await master[how]()
    await this.#promoted(replica)
    return replica
  }

  /**
   * A failover that forgets what `write` wrote, and nothing before. The replica is paused and cut off while the master
   * acknowledges the write and is killed. Then the replica is resumed and promoted.
   */
  async staleFailover(write: () => Promise<unknown>): Promise<RedisServer> {
    const [master, replica] = [await this.master(), await this.replica()]
    await master.replicatedTo(replica)
    await replica.pause()
    // Otherwise the write would wait in the replica's socket and be applied later.
    await master.call('CLIENT', 'KILL', 'TYPE', 'replica')
    await write()
    await master.kill()
    replica.resume()
    await this.#promoted(replica)
    return replica
  }

  async stop(): Promise<void> {
    await Promise.all([...this.sentinels, ...this.nodes].map(server => server.stop()))
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop()
  }

  async #promoted(node: RedisServer): Promise<void> {
    await until(
      `the node on port ${node.port} is master for all sentinels and itself`,
      async () => {
        const named = await Promise.all(this.sentinels.map(sentinel => this.#namedBy(sentinel)))
        return named.every(port => port === node.port) && (await node.info('replication')).role === 'master'
      },
      { limit: 20_000, every: 20 },
    )
  }

  async #namedBy(sentinel: RedisServer): Promise<number> {
    const [, port] = (await sentinel.call('SENTINEL', 'GET-MASTER-ADDR-BY-NAME', SentinelSet.group)) as [string, string]
    return Number(port)
  }
}

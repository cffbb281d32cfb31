import { newPlace } from './process.ts'
import { RedisServer, startRedis } from './redis.ts'
import { until } from './until.ts'

const QUORUM = 2

export interface SentinelOptions {
  /** Milliseconds of silence after which a node counts as down. @default 500 */
  readonly downAfter?: number
}

/** A master, its replica and three sentinels that agree on them. */
export async function startSentinel(options: SentinelOptions = {}): Promise<SentinelSet> {
  const { downAfter = 500 } = options
  const started: RedisServer[] = []
  try {
    const master = await startRedis()
    started.push(master)
    // Before the sentinels: what they do not see when they come, they look for again only after 10 s.
    const replica = await startRedis({ replicaOf: master })
    started.push(replica)
    const lines = [
      `sentinel monitor ${SentinelSet.group} ${master.host} ${master.port} ${QUORUM}`,
      `sentinel down-after-milliseconds ${SentinelSet.group} ${downAfter}`,
      // Also how long the sentinels wait before they vote again after a tie.
      `sentinel failover-timeout ${SentinelSet.group} 1000`,
    ]
    const sentinels = [1, 2, 3].map(async () => {
      const sentinel = new RedisServer(await newPlace('sentinel'), { lines, isSentinel: true })
      started.push(sentinel)
      await sentinel.start()
      // They find each other by what they publish, else every 2 s.
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
  /** The name by which clients ask for the master. */
  static readonly group = 'holdfast'
  /** Both Redis nodes, whatever their roles at the moment. */
  readonly nodes: readonly RedisServer[]
  readonly sentinels: readonly RedisServer[]

  constructor(nodes: readonly RedisServer[], sentinels: readonly RedisServer[]) {
    this.nodes = nodes
    this.sentinels = sentinels
  }

  /** The node that most sentinels name as master, which need not be up. */
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

  /** Waits until the replica is in step and all sentinels know it and each other, so that a failover can succeed. */
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
   * A failover that forgets what `write` wrote, and nothing before: the master acknowledges it alone, since the replica stands still and
   * is cut off, and dies; then the replica goes on and is made master.
   */
  async staleFailover(write: () => Promise<unknown>): Promise<RedisServer> {
    const [master, replica] = [await this.master(), await this.replica()]
    const { master_repl_offset: written } = await master.info('replication')
    await until('the replica has what was written before', async () => {
      const { slave_repl_offset: applied } = await replica.info('replication')
      return Number(applied) >= Number(written)
    })
    await replica.pause()
    // Else the write waits in the replica's socket and is applied after all.
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

import { oneAtATime, pauseFor } from '../faults/server-faults.ts'
import type { RedisServer } from '../servers/redis.ts'
import { SentinelSet, startSentinel } from '../servers/sentinel.ts'
import type { Engine, EngineOptions } from './engine.ts'
import { versionsOf } from './redis.ts'

/** A master, its replica and three sentinels, which promote the replica when the master is down. */
export async function startRedisSentinel({ ttl }: EngineOptions): Promise<Engine> {
  const set = await startSentinel()
  const { nodes, sentinels } = set
  const exclusive = oneAtATime()
  const nameOf = (node: RedisServer): string => `node ${nodes.indexOf(node) + 1}`
  /** Restarts the former master, which becomes a replica. */
  const rejoin = async (master: RedisServer): Promise<void> => {
    await master.start()
    await set.agreed()
  }
  /** Replication is asynchronous, and a master that returns serves until a sentinel makes it a replica. */
  const failover = { forgets: true, splits: true }
  return {
    name: 'redis-sentinel',
    versions: await versionsOf(nodes[0] as RedisServer),
    // The sentinels notice after 0.5 s and vote. Then clients ask them again.
    bound: { death: 1_000, election: 5_000 },
    endpoints: nodes,
    open: proxies => ({
      sentinels: sentinels.map(({ host, port }) => ({ host, port })),
      group: SentinelSet.group,
      proxies: Object.fromEntries(
        nodes.map(({ host, port }, index) => [`${host}:${port}`, proxies[index] ?? { host, port }]),
      ),
    }),
    faults: {
      failover: exclusive(async ({ report, wait, length }) => {
        const master = await set.master()
        report(nameOf(master), { stopsMajority: true, ...failover })
        await set.failover('kill')
        await wait(length)
        await rejoin(master)
      }),
      'stale-failover': exclusive(async ({ report, wait, length }) => {
        const master = await set.master()
        report(nameOf(master), { stopsMajority: true, ...failover })
        await set.staleFailover(() => wait(Math.min(length, 0.4 * ttl)))
        await wait(length)
        await rejoin(master)
      }),
      'server-pause': exclusive(async turn => {
        const master = await set.master()
        turn.report(nameOf(master), { stopsMajority: true })
        await pauseFor(Math.min(turn.length, 300), master, turn) // shorter than the sentinels' timeout
      }),
      'first-address': exclusive(async turn => {
        const [first] = sentinels as [RedisServer]
        const master = await set.master()
        // Without their connections, the other sentinels may find the master down, and promote the replica.
        turn.report('sentinel 1', failover)
        await first.pause()
        try {
          for (const type of ['normal', 'pubsub']) await master.call('CLIENT', 'KILL', 'TYPE', type)
          await turn.wait(turn.length)
        } finally {
          first.resume()
        }
        await set.agreed()
      }),
    },
    [Symbol.asyncDispose]: () => set.stop(),
  }
}

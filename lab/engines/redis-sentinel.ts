import type { Engine, EngineOptions } from '../engine.ts'
import type { RedisServer } from '../servers/redis.ts'
import { SentinelSet, startSentinel } from '../servers/sentinel.ts'
import { versionsOf } from './redis.ts'
import { oneAtATime } from './server-faults.ts'

/** A master with a replica, and three sentinels that make the replica master when the master is gone. */
export async function startRedisSentinel({ ttl }: EngineOptions): Promise<Engine> {
  const set = await startSentinel()
  const { nodes, sentinels } = set
  const alone = oneAtATime()
  const nameOf = (node: RedisServer): string => `node ${nodes.indexOf(node) + 1}`
  /** The former master comes back, and is a replica from then on. */
  const rejoin = async (master: RedisServer): Promise<void> => {
    await master.start()
    await set.agreed()
  }
  return {
    name: 'redis-sentinel',
    versions: await versionsOf(nodes[0] as RedisServer),
    // The sentinels notice after 0.5 s, vote, and tell; clients ask them again.
    bound: { death: 1_000, election: 5_000 },
    endpoints: nodes,
    open: ways => ({
      sentinels: sentinels.map(({ host, port }) => ({ host, port })),
      group: SentinelSet.group,
      ways: Object.fromEntries(
        nodes.map(({ host, port }, index) => [`${host}:${port}`, ways[index] ?? { host, port }]),
      ),
    }),
    faults: {
      // Replication is not awaited: any failover may miss the last writes.
      failover: alone(async ({ tell, wait, length }) => {
        const master = await set.master()
        tell(nameOf(master), { stopsMajority: true, forgets: true })
        await set.failover('kill')
        await wait(length)
        await rejoin(master)
        return undefined
      }),
      'stale-failover': alone(async ({ tell, wait, length }) => {
        const master = await set.master()
        tell(nameOf(master), { stopsMajority: true, forgets: true })
        await set.staleFailover(() => wait(Math.min(length, 0.4 * ttl)))
        await wait(length)
        await rejoin(master)
        return undefined
      }),
      'server-pause': alone(async ({ tell, wait, length }) => {
        // For a shorter time than the sentinels wait for.
        const master = await set.master()
        tell(nameOf(master), { stopsMajority: true })
        await master.pause()
        try {
          await wait(Math.min(length, 300))
        } finally {
          master.resume()
        }
        return undefined
      }),
    },
    [Symbol.asyncDispose]: () => set.stop(),
  }
}

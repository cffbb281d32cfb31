import { randomBytes } from 'node:crypto'
import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { CALM, clockFaults, oneAtATime, serverFaults } from '../faults/server-faults.ts'
import { startClock } from '../servers/clock.ts'
import { type RedisServer, startRedis } from '../servers/redis.ts'
import { until } from '../servers/until.ts'
import type { Engine, EngineOptions } from './engine.ts'

/** One node that syncs each write to disk, so a restart forgets nothing. */
export async function startRedisAlone({ ttl, clocks }: EngineOptions): Promise<Engine> {
  const clock = clocks ? startClock() : undefined
  const password = randomBytes(16).toString('hex')
  const settings = { appendonly: 'always', clock, password, config: { masterauth: password } } as const
  let server = await startRedis(settings)
  /** The one before the last switchover. */
  let old: RedisServer | undefined
  const address = { host: server.host, port: server.port }
  const exclusive = oneAtATime()
  const seldom = oneAtATime(CALM * ttl)
  return {
    name: 'redis',
    versions: await versionsOf(server),
    bound: { death: 1_000, election: 1_000 },
    endpoints: [address],
    open: ([proxy]) => ({ url: `redis://:${password}@${proxy?.host}:${proxy?.port}` }),
    faults: {
      ...serverFaults([server], { needed: 1, choose: async () => server, wipe: wipeRedis, exclusive }),
      // Planned, so that nothing is lost. The old server keeps its connections until the next switchover.
      switchover: exclusive(
        seldom(async ({ report, wait, random, length }) => {
          await old?.stop()
          const next = await startRedis({ ...settings, replicaOf: server })
          old = next
          report('the server', { stopsMajority: true })
          await until('the failover begins', () => server.call('FAILOVER', 'TO', next.host, next.port))
          await until('the replica is master', async () => (await next.info('replication')).role === 'master')
          await next.call('CONFIG', 'REWRITE') // or it would be a replica after a restart
          ;[old, server] = [server, next]
          address.port = next.port
          await wait(Math.max(length, ttl))
          // Requests have moved by now. Nobody may depend on it.
          if (random() < 0.5) await old.pause()
        }),
      ),
      // The clock never jumps back: with a forgotten counter that is a known violation, see the guarantees.
      ...clockFaults(clock ? [clock] : [], 0, 5 * ttl),
    },
    async [Symbol.asyncDispose]() {
      await Promise.all([server.stop(), old?.stop()])
      clock?.stop()
    },
  }
}

/** Every Valkey reports 7.2.4 as its `redis_version`. */
export async function versionsOf(server: RedisServer): Promise<Engine['versions']> {
  const { valkey_version: valkey, redis_version: redis = 'unknown' } = await server.info('server')
  return valkey === undefined ? { redis } : { valkey }
}

/** Removes the data of a server that is down. */
export function wipeRedis(server: RedisServer): void {
  rmSync(join(server.folder, 'appendonlydir'), { recursive: true, force: true })
}

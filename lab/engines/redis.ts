import { randomBytes } from 'node:crypto'
import { rmSync } from 'node:fs'
import { join } from 'node:path'
import type { Engine, EngineOptions } from '../engine.ts'
import { startClock } from '../servers/clock.ts'
import { type RedisServer, startRedis } from '../servers/redis.ts'
import { clockFaults, serverFaults } from './server-faults.ts'

/** One node that syncs each write to its disk, so that it forgets nothing unless its data is removed. */
export async function startRedisAlone({ ttl, clocks }: EngineOptions): Promise<Engine> {
  const clock = clocks ? startClock() : undefined
  const password = randomBytes(16).toString('hex')
  const server = await startRedis({ appendonly: 'always', clock, password })
  return {
    name: 'redis',
    versions: await versionsOf(server),
    bound: { death: 1_000, election: 1_000 },
    endpoints: [server],
    open: ([way]) => ({ url: `redis://:${password}@${way?.host}:${way?.port}` }),
    faults: {
      ...serverFaults([server], { needed: 1, wipe: wipeRedis }),
      // A clock that goes back while the counter is forgotten is a violation that is known: see the guarantees.
      ...clockFaults(clock ? [clock] : [], 0, 5 * ttl),
    },
    async [Symbol.asyncDispose]() {
      await server.stop()
      clock?.stop()
    },
  }
}

/** Valkey reports 7.2.4 as its `redis_version`, whatever its own is. */
export async function versionsOf(server: RedisServer): Promise<Engine['versions']> {
  const { valkey_version: valkey, redis_version: redis = 'unknown' } = await server.info('server')
  return valkey === undefined ? { redis } : { valkey }
}

/** Of a server that is down. */
export function wipeRedis(server: RedisServer): void {
  rmSync(join(server.folder, 'appendonlydir'), { recursive: true, force: true })
}

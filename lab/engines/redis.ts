import { randomBytes } from 'node:crypto'
import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { clockFaults, serverFaults } from '../faults/server-faults.ts'
import { startClock } from '../servers/clock.ts'
import { type RedisServer, startRedis } from '../servers/redis.ts'
import type { Engine, EngineOptions } from './engine.ts'

/** One node that syncs each write to disk, so a restart forgets nothing. */
export async function startRedisAlone({ ttl, clocks }: EngineOptions): Promise<Engine> {
  const clock = clocks ? startClock() : undefined
  const password = randomBytes(16).toString('hex')
  const server = await startRedis({ appendonly: 'always', clock, password })
  return {
    name: 'redis',
    versions: await versionsOf(server),
    bound: { death: 1_000, election: 1_000 },
    endpoints: [server],
    open: ([proxy]) => ({ url: `redis://:${password}@${proxy?.host}:${proxy?.port}` }),
    faults: {
      ...serverFaults([server], { needed: 1, wipe: wipeRedis }),
      // The clock never jumps back: with a forgotten counter that is a known violation, see the guarantees.
      ...clockFaults(clock ? [clock] : [], 0, 5 * ttl),
    },
    async [Symbol.asyncDispose]() {
      await server.stop()
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

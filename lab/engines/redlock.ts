import { randomBytes } from 'node:crypto'
import type { Engine, EngineOptions } from '../engine.ts'
import type { Turn } from '../prove/fault.ts'
import { between, shuffled } from '../prove/random.ts'
import { startClock } from '../servers/clock.ts'
import { startRedis } from '../servers/redis.ts'
import { versionsOf, wipeRedis } from './redis.ts'
import { clockFaults, serverFaults } from './server-faults.ts'

const NODES = 5
const MAJORITY = 3

/** Five independent nodes, of which one at a time may stop, restart and forget. */
export async function startRedlock({ ttl, clocks }: EngineOptions): Promise<Engine> {
  const own = clocks ? Array.from({ length: NODES }, () => startClock()) : []
  const password = randomBytes(16).toString('hex')
  const servers = await Promise.all(
    Array.from({ length: NODES }, (_, index) => startRedis({ appendonly: 'always', clock: own[index], password })),
  )
  return {
    name: 'redlock',
    versions: await versionsOf(servers[0] as (typeof servers)[0]),
    bound: { death: 1_000, election: 1_000 },
    // A server that was just started may have forgotten, and waits for this long; uptimes are in whole seconds.
    warmUp: ttl + 2_000,
    endpoints: servers,
    open: ways => ({
      url: `redlock://${ways.map(({ host, port }) => `${host}:${port}`).join(',')}?maxTtl=${ttl}&password=${password}`,
    }),
    faults: {
      ...serverFaults(servers, { needed: 3, mayForget: 1, wipe: wipeRedis }),
      ...clockFaults(own, -5 * ttl, 5 * ttl),
      ...(clocks && {
        async 'majority-clock'({ random, tell, wait, length }: Turn) {
          const struck = shuffled(random, own).slice(0, MAJORITY)
          const ms = Math.round(between(random, 1, 5) * ttl)
          tell(`${struck.map(clock => `server ${own.indexOf(clock) + 1}`).join(', ')}, by ${ms} ms`, {
            changesClock: true,
          })
          for (const clock of struck) clock.jumpWall(ms)
          await wait(length)
          return undefined
        },
      }),
    },
    async [Symbol.asyncDispose]() {
      await Promise.all(servers.map(server => server.stop()))
      for (const clock of own) clock.stop()
    },
  }
}

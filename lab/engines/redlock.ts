import { randomBytes } from 'node:crypto'
import type { Turn } from '../faults/fault.ts'
import { between, shuffled } from '../faults/random.ts'
import { clockFaults, serverFaults } from '../faults/server-faults.ts'
import { startClock } from '../servers/clock.ts'
import { startRedis } from '../servers/redis.ts'
import type { Engine, EngineOptions } from './engine.ts'
import { versionsOf, wipeRedis } from './redis.ts'

const NODES = 5
const MAJORITY = 3

/** Five independent nodes. One at a time may stop, restart and forget. */
export async function startRedlock({ ttl, clocks }: EngineOptions): Promise<Engine> {
  const own = clocks ? Array.from({ length: NODES }, () => startClock()) : []
  const password = randomBytes(16).toString('hex')
  const servers = await Promise.all(
    Array.from({ length: NODES }, (_, index) => startRedis({ appendonly: 'always', clock: own[index], password })),
  )
  return {
    name: 'redlock',
    lacksReaders: true,
    versions: await versionsOf(servers[0] as (typeof servers)[0]),
    bound: { death: 1_000, election: 1_000 },
    // A server that just started may have forgotten leases, so it does not vote. Uptimes are whole seconds.
    warmUp: ttl + 2_000,
    endpoints: servers,
    open: proxies => ({
      url: `redlock://${proxies.map(({ host, port }) => `${host}:${port}`).join(',')}?maxTtl=${ttl}&password=${password}`,
    }),
    faults: {
      ...serverFaults(servers, { needed: 3, mayForget: 1, wipe: wipeRedis }),
      ...clockFaults(own, -5 * ttl, 5 * ttl),
      ...(clocks && {
        async 'majority-clock'({ random, report, wait, length }: Turn) {
          const struck = shuffled(random, own).slice(0, MAJORITY)
          const ms = Math.round(between(random, 1, 5) * ttl)
          report(`${struck.map(clock => `server ${own.indexOf(clock) + 1}`).join(', ')}, by ${ms} ms`, {
            changesClock: true,
          })
          for (const clock of struck) clock.jumpWall(ms)
          await wait(length)
        },
      }),
    },
    async [Symbol.asyncDispose]() {
      await Promise.all(servers.map(server => server.stop()))
      for (const clock of own) clock.stop()
    },
  }
}

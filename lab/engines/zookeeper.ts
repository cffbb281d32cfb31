import { pick, type Random } from '../faults/random.ts'
import { clockFaults, killFor, oneAtATime, serverFaults } from '../faults/server-faults.ts'
import { startClock } from '../servers/clock.ts'
import { startEnsemble, type ZooKeeperServer } from '../servers/zookeeper.ts'
import type { Engine, EngineOptions } from './engine.ts'

const TICK = 200
/** The timeout of a session in ttls: 5/3, rounded up by at most an eighth. */
const SESSION = (5 / 3) * (9 / 8)
/** The longest election, and until clients have a session with the new leader, in milliseconds. */
const ELECTION = 4_000

/** An ensemble of three. */
export async function startZooKeeper({ ttl, clocks }: EngineOptions): Promise<Engine> {
  const clock = clocks ? startClock() : undefined
  const ensemble = await startEnsemble({ clock })
  const { servers } = ensemble
  const lasts = SESSION * ttl
  const exclusive = oneAtATime()
  const choose = async (random: Random): Promise<ZooKeeperServer> => {
    const leader = await ensemble.leader()
    return pick(
      random,
      servers.filter(server => server !== leader),
    )
  }
  return {
    name: 'zookeeper',
    versions: { zookeeper: await versionOf(servers[0] as ZooKeeperServer) },
    // Sessions end at a tick, and a new leader restarts all of them.
    bound: { death: lasts - ttl + TICK + 1_000, election: 2 * lasts - ttl + TICK + ELECTION },
    lasts,
    endsByHolder: true,
    endpoints: servers,
    open: proxies => ({ url: `zookeeper://${proxies.map(({ host, port }) => `${host}:${port}`).join(',')}` }),
    faults: {
      ...serverFaults(servers, { needed: 2, choose, exclusive }),
      // Sessions end by the monotonic clock, which never jumps back.
      ...clockFaults(clock ? [clock] : [], 0, 2 * lasts, 'jumpMonotonic'),
      'leader-kill': exclusive(async turn => {
        const leader = await ensemble.leader()
        turn.report(`server ${servers.indexOf(leader) + 1}`, { stopsMajority: true })
        await killFor(Math.max(turn.length, ELECTION), leader, turn)
      }),
    },
    async [Symbol.asyncDispose]() {
      await ensemble.stop()
      clock?.stop()
    },
  }
}

async function versionOf(server: ZooKeeperServer): Promise<string> {
  return /version: ([\d.]+)/.exec(await server.ask('srvr'))?.[1] ?? 'unknown'
}

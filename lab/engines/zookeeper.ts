import type { Engine, EngineOptions } from '../engine.ts'
import { pick, type Random } from '../prove/random.ts'
import { startClock } from '../servers/clock.ts'
import { startEnsemble, type ZooKeeperServer } from '../servers/zookeeper.ts'
import { clockFaults, oneAtATime, serverFaults } from './server-faults.ts'

const TICK = 200
/** In ttls: a session lasts 5/3, rounded up by at most an eighth. */
const SESSION = (5 / 3) * (9 / 8)
/** Milliseconds within which three servers have a leader again, and clients a session with it. */
const ELECTION = 4_000

/** An ensemble of three. */
export async function startZooKeeper({ ttl, clocks }: EngineOptions): Promise<Engine> {
  const clock = clocks ? startClock() : undefined
  const ensemble = await startEnsemble({ clock })
  const { servers } = ensemble
  const lasts = SESSION * ttl
  const alone = oneAtATime()
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
    // Sessions end at a tick, and a new leader starts all of them anew.
    bound: { death: lasts - ttl + TICK + 1_000, election: 2 * lasts - ttl + TICK + ELECTION },
    lasts,
    endpoints: servers,
    open: ways => ({ url: `zookeeper://${ways.map(({ host, port }) => `${host}:${port}`).join(',')}` }),
    faults: {
      ...serverFaults(servers, { needed: 2, choose, alone }),
      // Sessions end by the monotonic clock, which never goes back.
      ...clockFaults(clock ? [clock] : [], 0, 2 * lasts, 'jumpMonotonic'),
      'leader-kill': alone(async ({ tell, wait, length }) => {
        const leader = await ensemble.leader()
        tell(`server ${servers.indexOf(leader) + 1}`, { stopsMajority: true })
        await leader.kill()
        await wait(Math.max(length, ELECTION))
        await leader.start()
        return undefined
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

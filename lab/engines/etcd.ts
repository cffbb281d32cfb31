import type { Engine, EngineOptions } from '../engine.ts'
import { pick, type Random } from '../prove/random.ts'
import { type EtcdServer, startEtcdCluster } from '../servers/etcd.ts'
import { oneAtATime, serverFaults } from './server-faults.ts'

/** Milliseconds within which three members have a leader again: their timeout is 500 ms, and a vote may be split. */
const ELECTION = 2_000

/** A cluster of three. Go programs cannot be given another clock. */
export async function startEtcd({ ttl }: EngineOptions): Promise<Engine> {
  const cluster = await startEtcdCluster()
  const { members } = cluster
  const alone = oneAtATime()
  const nameOf = (member: EtcdServer): string => `member ${members.indexOf(member) + 1}`
  const choose = async (random: Random): Promise<EtcdServer> => {
    const leader = await cluster.leader()
    return pick(
      random,
      members.filter(member => member !== leader),
    )
  }
  const version = await versionOf(members[0] as EtcdServer)
  // https://github.com/etcd-io/etcd/pull/16822: it revokes what ran out by its own time, and the new leader lets it.
  const endsLeases = isBefore(version, '3.4.31') || (!isBefore(version, '3.5.0') && isBefore(version, '3.5.13'))
  return {
    name: 'etcd',
    versions: { etcd: version },
    // Whole seconds, and a new leader starts all leases anew.
    bound: { death: 2_000, election: ttl + ELECTION + 2_000 },
    endpoints: members,
    // etcd extends shorter ttls, which runs should cover too.
    open: ways => ({ url: `etcd://${ways.map(({ host, port }) => `${host}:${port}`).join(',')}?shortestTtl=500` }),
    faults: {
      ...serverFaults(members, { needed: 2, choose, alone }),
      'leader-kill': alone(async ({ tell, wait, length }) => {
        const leader = await cluster.leader()
        tell(nameOf(leader), { stopsMajority: true })
        await leader.kill()
        await wait(Math.max(length, ELECTION))
        await leader.start()
        return undefined
      }),
      'leader-pause': alone(async ({ tell, wait, length }) => {
        const leader = await cluster.leader()
        tell(nameOf(leader), { stopsMajority: true, ...(endsLeases && { forgets: true }) })
        await leader.pause()
        try {
          await wait(Math.max(length, ELECTION))
        } finally {
          leader.resume()
        }
        return undefined
      }),
      'leader-cut': alone(async ({ tell, wait, length }) => {
        const leader = await cluster.leader()
        tell(nameOf(leader), { stopsMajority: true })
        await cluster.cut(leader)
        try {
          await wait(Math.max(length, ELECTION))
        } finally {
          cluster.heal()
        }
        return undefined
      }),
    },
    [Symbol.asyncDispose]: () => cluster.stop(),
  }
}

async function versionOf({ host, port }: EtcdServer): Promise<string> {
  const response = await fetch(`http://${host}:${port}/version`)
  return ((await response.json()) as { etcdserver: string }).etcdserver
}

function isBefore(version: string, other: string): boolean {
  return version.localeCompare(other, 'en', { numeric: true }) < 0
}

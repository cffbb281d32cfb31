import { pick, type Random } from '../faults/random.ts'
import { killFor, oneAtATime, pauseFor, serverFaults } from '../faults/server-faults.ts'
import { type EtcdServer, startEtcdCluster } from '../servers/etcd.ts'
import type { Engine, EngineOptions } from './engine.ts'

/** The longest election, in milliseconds: the timeout is 500 ms, and a vote may be split. */
const ELECTION = 2_000

/** How long an unresponsive client keeps a name, in ttls of a second: etcd searches for leases that ended every half second. */
const LASTS = 2

/** A cluster of three. The clock of a Go program cannot be changed. */
export async function startEtcd({ ttl }: EngineOptions): Promise<Engine> {
  const cluster = await startEtcdCluster()
  const { members } = cluster
  const exclusive = oneAtATime(ELECTION)
  const nameOf = (member: EtcdServer): string => `member ${members.indexOf(member) + 1}`
  const choose = async (random: Random): Promise<EtcdServer> => {
    const leader = await cluster.leader()
    return pick(
      random,
      members.filter(member => member !== leader),
    )
  }
  const version = await versionOf(members[0] as EtcdServer)
  // A former leader revokes leases that expired by its own time: https://github.com/etcd-io/etcd/pull/16822
  const endsLeases = isBefore(version, '3.4.31') || (!isBefore(version, '3.5.0') && isBefore(version, '3.5.13'))
  return {
    name: 'etcd',
    versions: { etcd: version },
    // Leases have whole seconds, and a new leader restarts all of them.
    bound: { death: 2_000, election: ttl + ELECTION + 2_000 },
    // The lease of a client that is paused for less outlives the pause.
    lasts: LASTS * ttl,
    endpoints: members,
    // etcd extends shorter ttls. Runs should cover that too.
    open: proxies => ({
      url: `etcd://${proxies.map(({ host, port }) => `${host}:${port}`).join(',')}?minTtl=500`,
    }),
    faults: {
      ...serverFaults(members, { needed: 2, choose, exclusive }),
      'leader-kill': exclusive(async turn => {
        const leader = await cluster.leader()
        turn.report(nameOf(leader), { stopsMajority: true })
        await killFor(Math.max(turn.length, ELECTION), leader, turn)
      }),
      'leader-pause': exclusive(async turn => {
        const leader = await cluster.leader()
        turn.report(nameOf(leader), { stopsMajority: true, ...(endsLeases && { forgets: true }) })
        await pauseFor(Math.max(turn.length, ELECTION), leader, turn)
      }),
      'leader-cut': exclusive(async ({ report, wait, length }) => {
        const leader = await cluster.leader()
        report(nameOf(leader), { stopsMajority: true })
        await cluster.cut(leader)
        try {
          await wait(Math.max(length, ELECTION))
        } finally {
          cluster.heal()
        }
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

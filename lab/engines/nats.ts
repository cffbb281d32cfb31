import { rmSync } from 'node:fs'
import { migrate } from '../../src/index.ts'
import { pick, type Random } from '../faults/random.ts'
import { killFor, oneAtATime, serverFaults } from '../faults/server-faults.ts'
import { type NatsServer, startNatsCluster } from '../servers/nats.ts'
import type { Endpoint } from '../servers/port.ts'
import { until } from '../servers/until.ts'
import type { Engine } from './engine.ts'

/** The longest election, and until clients have followed it, in milliseconds. */
const ELECTION = 25_000

/** A cluster of three. */
export async function startNats(): Promise<Engine> {
  const cluster = await startNatsCluster()
  const { servers } = cluster
  const urlOf = (all: readonly Endpoint[]): string =>
    `nats://${all.map(({ host, port }) => `${host}:${port}`).join(',')}/holdfast`
  const create = (): Promise<unknown> =>
    until('the bucket is created', () => migrate(urlOf(servers)).catch(() => undefined))
  await create()
  const exclusive = oneAtATime()
  const choose = async (random: Random): Promise<NatsServer> => {
    const leader = await cluster.leader()
    return pick(
      random,
      servers.filter(server => server !== leader),
    )
  }
  return {
    name: 'nats',
    versions: { nats: await (servers[0] as NatsServer).version() },
    bound: { death: 1_000, election: ELECTION },
    endpoints: servers,
    open: proxies => ({ url: urlOf(proxies) }),
    faults: {
      // The bucket has a leader of its own, so any server may be one.
      ...serverFaults(servers, { needed: 2, choose, exclusive }),
      'server-forget': exclusive(async turn => {
        turn.report('all servers', { forgets: true, stopsMajority: true })
        await Promise.all(servers.map(server => server.kill()))
        for (const { folder } of servers) rmSync(folder, { recursive: true, force: true })
        await Promise.all(servers.map(server => server.start()))
        await create()
      }),
      'leader-kill': exclusive(async turn => {
        const leader = await cluster.leader()
        turn.report(`server ${servers.indexOf(leader) + 1}`, { stopsMajority: true })
        await killFor(turn.length, leader, turn)
      }),
    },
    [Symbol.asyncDispose]: () => cluster.stop(),
  }
}

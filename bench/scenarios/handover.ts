import { once } from 'node:events'
import { startProxy } from '../../lab/servers/proxy.ts'
import type { Lease } from '../../src/index.ts'
import { type Place, pause } from '../peer.ts'
import { listOf, moment, rough, type Scenario, type Trial, whole } from '../scenario.ts'
import { median, quantile } from '../statistics.ts'
import type { Stage, Values } from '../worker.ts'

/** Milliseconds that each direction takes where the server is away. */
const WAY = 5

export const ON_ONE_MACHINE = 'on one machine'
export const AWAY: string = `the server is ${2 * WAY} ms away, through proxies`

export const scenario: Scenario = {
  title: 'Handover: the leader gets SIGTERM and the next one leads',
  about:
    'Two processes campaign in one election. The leader gets SIGTERM; its handler aborts the signal of `run`, and its work ' +
    'ends at once. The handover is from that handler to the first line of work in the other process. Then the first ' +
    'campaigns again. A round trip is the smallest durable write of the store, by a raw client in the leader, once a ' +
    'term: `SET` (with five servers, at a majority), a committed update, `put`, `setData`. Both are measured after an idle ' +
    'period. On one machine, most of both is the time in which processes wake up; far from the server, it is the network.',
  rounds: 3,
  variants: isQuick => {
    if (isQuick) return [{ name: ON_ONE_MACHINE, settings: { terms: 10, still: 30, way: 0 } }]
    const terms = 100
    return [
      { name: ON_ONE_MACHINE, settings: { terms, still: 30, way: 0 } },
      {
        name: AWAY,
        settings: { terms: terms / 2, still: 100, way: WAY },
        takesPart: (_, { over }) => over !== 'sqlite',
      },
    ]
  },
  takesPart: peer => peer.openTrip !== undefined,
  async measure(trial) {
    const place = await placeOf(trial)
    const workers = [trial.start('work', place), trial.start('work', place)]
    await Promise.all(workers.map(worker => worker.reached('open')))
    for (const worker of workers) worker.go()
    const all = await Promise.all(workers.map(worker => worker.values))
    const moments = all
      .flatMap((values, process) =>
        ['began', 'stopped'].flatMap(what => listOf(values, what).map(at => ({ process, what, at }))),
      )
      .sort((a, b) => a.at - b.at)
    const gaps = moments.flatMap(({ process, what, at }, index) => {
      const next = moments[index + 1]
      return what === 'stopped' && next?.what === 'began' && next.process !== process ? [next.at - at] : []
    })
    const trip = median(all.flatMap(values => listOf(values, 'trips')))
    const p50 = median(gaps)
    return { handovers: gaps.length, p50, p99: quantile(gaps, 0.99), trip, trips: p50 / trip }
  },
  columns: [
    { title: 'handovers', value: 'handovers', format: whole },
    { title: 'p50 ms', value: 'p50', format: rough },
    { title: 'p99 ms', value: 'p99', format: rough },
    { title: 'round trip ms', value: 'trip', format: rough },
    { title: 'p50 in round trips', value: 'trips', format: rough },
  ],
}

async function placeOf({ place, settings: { way = 0 }, use }: Trial): Promise<Place> {
  if (way === 0) return place
  const ports = place.ports.map(async port => {
    const proxy = use(await startProxy({ host: place.host, port }))
    proxy.up.delay(way)
    proxy.down.delay(way)
    return proxy.port
  })
  return { ...place, ports: await Promise.all(ports) }
}

export async function work({ peer, place, settings, reached }: Stage): Promise<Values> {
  const { terms = 1, still = 0 } = settings
  const [client, trip] = [await peer.open(place), await peer.openTrip?.(place)]
  const election = client.election?.('handover')
  if (!election || !trip) throw new Error(`${peer.label} has no elections`)
  const [began, stopped, trips]: [number[], number[], number[]] = [[], [], []]
  const lead = async ({ signal }: Lease): Promise<void> => {
    began.push(moment())
    const ended = once(signal, 'abort')
    await pause(still)
    const sent = moment()
    await trip.make()
    trips.push(moment() - sent)
    await pause(still)
    process.kill(process.pid, 'SIGTERM')
    await ended
  }
  await trip.make() // the first connects
  await reached('open')
  while (stopped.length < terms) {
    const stop = new AbortController()
    process.once('SIGTERM', () => {
      stopped.push(moment())
      stop.abort()
    })
    await election.run({ signal: stop.signal }, lead)
    await pause(still / 2) // in its place would be a process that starts
  }
  await trip.close()
  await client.close()
  return { began, stopped, trips }
}

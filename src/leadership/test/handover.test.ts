import { once } from 'node:events'
import { expect, onTestFinished, test } from 'vitest'
import { startEtcd } from '../../../lab/servers/etcd.ts'
import { startPostgres } from '../../../lab/servers/postgres.ts'
import { startRedis } from '../../../lab/servers/redis.ts'
import { until } from '../../../lab/servers/until.ts'
import { startZooKeeper } from '../../../lab/servers/zookeeper.ts'
import { countRoundTrips } from '../../../test/round-trips.ts'
import { connect, type Lease, type Locks } from '../../index.ts'

const roundTrips = countRoundTrips()
const TTL = 60_000 // no renewal comes between
const TURNS = 6

/** A server until the test ends; resolves to its URL. */
async function during<Server extends { stop(): Promise<unknown> }>(
  starting: Promise<Server>,
  urlOf: (server: Server) => string,
): Promise<string> {
  const server = await starting
  onTestFinished(async () => void (await server.stop()))
  return urlOf(server)
}

const engines: readonly [string, number, () => Promise<string>][] = [
  ['Redis', 2, () => during(startRedis(), ({ url }) => url)],
  ['PostgreSQL', 2, () => during(startPostgres(), server => `${server.url()}?create=true`)],
  ['etcd', 2, () => during(startEtcd(), ({ port }) => `etcd://127.0.0.1:${port}`)],
  ['ZooKeeper', 3, () => during(startZooKeeper(), ({ port }) => `zookeeper://127.0.0.1:${port}`)],
]

/** Stands for the name until it has led once. */
function stand(locks: Locks): { readonly leads: Promise<void>; resign(): Promise<void> } {
  const leads = Promise.withResolvers<void>()
  const stop = new AbortController()
  const work = async ({ signal }: Lease): Promise<void> => {
    leads.resolve()
    await once(signal, 'abort')
  }
  const run = locks.election('a').run({ signal: stop.signal }, work)
  const resign = (): Promise<void> => {
    stop.abort()
    return run
  }
  return { leads: leads.promise, resign }
}

/** Until the waiter knows that it waits, and is subscribed. */
async function stillness(): Promise<void> {
  let before: number | undefined
  const isStill = (): boolean => {
    const now = roundTrips()
    const same = now === before
    before = now
    return same
  }
  await until('nothing is asked', isStill, { every: 100 })
}

test.each(engines)('over %s leadership is handed over in %i round trips', async (_, trips, start) => {
  const url = await start()
  await using one = await connect(url, { ttl: TTL })
  await using other = await connect(url, { ttl: TTL })
  let leader = stand(one)
  await leader.leads
  const counted: number[] = []
  for (let turn = 0; turn < TURNS; turn += 1) {
    const next = stand(turn % 2 === 0 ? other : one)
    await until('it waits', async () => (await one.inspect('a')).waiters.length === 1)
    await stillness()
    const before = roundTrips()
    await leader.resign()
    await next.leads
    counted.push(roundTrips() - before)
    leader = next
  }
  await leader.resign()
  // What a client does by itself now and then may come between one or the other.
  expect(counted.toSorted((a, b) => a - b)[TURNS / 2]).toBe(trips)
})

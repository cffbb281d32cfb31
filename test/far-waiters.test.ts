import { setTimeout as sleep } from 'node:timers/promises'
import { afterEach, expect, test } from 'vitest'
import { inTime } from '../lab/conformance/timing.ts'
import { startEtcd } from '../lab/servers/etcd.ts'
import { startMariaDb } from '../lab/servers/mariadb.ts'
import { startPostgres } from '../lab/servers/postgres.ts'
import { startProxy, type TcpProxy } from '../lab/servers/proxy.ts'
import { startRedis } from '../lab/servers/redis.ts'
import { until } from '../lab/servers/until.ts'
import { startZooKeeper } from '../lab/servers/zookeeper.ts'
import { connect, type Lease, type Locks } from '../src/index.ts'

const ROUND_TRIP = 240

/** A waiter that has not asked for 100 ms may be paused, so a release also notifies one behind it. */
const HOLD = 300

/** Of others while a waiter is in the queue: those ahead of it are served, and over MySQL the third may overtake. */
const MOST_GRANTS = 8

interface Server extends AsyncDisposable {
  readonly port: number
}

const ENGINES: readonly (readonly [string, () => Promise<{ server: Server; urlBy: (port: number) => string }>])[] = [
  ['redis', async () => ({ server: await startRedis(), urlBy: port => `redis://127.0.0.1:${port}` })],
  [
    'postgres',
    async () => {
      const server = await startPostgres()
      return { server, urlBy: port => `${server.urlBy(port)}?create=true` }
    },
  ],
  [
    'mysql',
    async () => {
      const server = await startMariaDb()
      return { server, urlBy: port => `${server.urlBy(port)}?create=true` }
    },
  ],
  ['etcd', async () => ({ server: await startEtcd(), urlBy: port => `etcd://127.0.0.1:${port}` })],
  ['zookeeper', async () => ({ server: await startZooKeeper(), urlBy: port => `zookeeper://127.0.0.1:${port}` })],
]

const cleanups: (() => PromiseLike<void>)[] = []
afterEach(cleanUp)

async function cleanUp(): Promise<void> {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup()
}

/** Clients and proxies run in this process. If it stalls in its grace period, the waiter is rightly passed. */
async function inCalm(attempt: () => Promise<void>): Promise<void> {
  await inTime(100, async () => {
    await cleanUp()
    await attempt()
  })
}

test.each(ENGINES)('%s: a waiter far away is served in turn with near ones that ask again at once', (_, start) =>
  inCalm(async () => {
    const { acquiring, grants } = await compete(start)
    const before = grants()
    const lease = await acquiring
    expect(grants() - before).toBeLessThanOrEqual(MOST_GRANTS)
    await lease.release()
  }),
)

test.each(ENGINES)(
  '%s: a waiter that was passed is served once it asks again, although it is far away now',
  (_, start) =>
    inCalm(async () => {
      const { acquiring, grants, proxy } = await compete(start, 0)
      proxy.up.hold()
      const held = grants()
      await until('it was passed', () => grants() > held + 5)
      proxy.up.delay(ROUND_TRIP / 2)
      proxy.down.delay(ROUND_TRIP / 2)
      const before = grants()
      const lease = await acquiring
      expect(grants() - before).toBeLessThanOrEqual(MOST_GRANTS)
      await lease.release()
    }),
)

/** Clients near the server that ask again at once, and a claim that waits with them, `roundTrip` ms away. */
async function compete(
  start: (typeof ENGINES)[number][1],
  roundTrip = ROUND_TRIP,
): Promise<{ proxy: TcpProxy; acquiring: Promise<Lease>; grants: () => number }> {
  const { server, urlBy } = await start()
  cleanups.push(() => server[Symbol.asyncDispose]())
  const proxy = await startProxy(server)
  cleanups.push(() => proxy.stop())
  proxy.up.delay(roundTrip / 2)
  proxy.down.delay(roundTrip / 2)
  const open = async (owner: string, port: number): Promise<Locks> => {
    const locks = await connect(urlBy(port), { owner, ttl: 20_000 })
    cleanups.push(() => locks.close({ grace: 0 }))
    return locks
  }

  const near = [await open('near 1', server.port), await open('near 2', server.port), await open('near 3', server.port)]
  let grants = 0
  const stop = new AbortController()
  const work = async (locks: Locks): Promise<void> => {
    while (!stop.signal.aborted) {
      const lease = await locks.acquire('busy')
      grants += 1
      await sleep(HOLD)
      await lease.release()
    }
  }
  const working = near.map(work)
  cleanups.push(async () => {
    stop.abort()
    await Promise.all(working)
  })

  const far = await open('far', proxy.port)
  const acquiring = far.acquire('busy', { wait: 30_000 })
  acquiring.catch(() => {}) // awaited by the test
  await until('it waits', async () => {
    const { waiters } = (await near[0]?.inspect('busy')) ?? { waiters: [] }
    return waiters.some(({ owner }) => owner === 'far')
  })
  return { proxy, acquiring, grants: () => grants }
}

import { Cluster, Redis } from 'ioredis'
import postgresJs from 'postgres'
import { createCluster, createSentinel } from 'redis'
import { afterAll, beforeAll, describe, test } from 'vitest'
import { startCluster } from '../lab/servers/cluster.ts'
import { startEtcd } from '../lab/servers/etcd.ts'
import { startPostgres } from '../lab/servers/postgres.ts'
import { startProxy, type TcpProxy } from '../lab/servers/proxy.ts'
import { startRedis } from '../lab/servers/redis.ts'
import { SentinelSet, startSentinel } from '../lab/servers/sentinel.ts'
import { until } from '../lab/servers/until.ts'
import { startZooKeeper } from '../lab/servers/zookeeper.ts'
import type { Store } from '../src/contract/store.ts'
import { etcd } from '../src/stores/etcd/index.ts'
import { postgres } from '../src/stores/postgres/index.ts'
import { redis } from '../src/stores/redis/index.ts'
import { redlock } from '../src/stores/redlock/index.ts'
import { zookeeper } from '../src/stores/zookeeper/index.ts'
import { claimOf, hold } from './support.ts'

interface Engine {
  /** The address that is first. */
  readonly first: number
  /** A store that knows another port for the first address. */
  open(first: number): Store
  /** Ends the connections of all stores. */
  disconnect?(): Promise<unknown>
}

const host = '127.0.0.1'
const stops: (() => Promise<unknown>)[] = []
const engines: Record<string, Engine> = {}
beforeAll(async () => {
  const [server, keeper, database, cluster, set] = await Promise.all([
    startEtcd(),
    startZooKeeper(),
    startPostgres(),
    startCluster(),
    startSentinel(),
  ])
  const nodes = await Promise.all([startRedis(), startRedis(), startRedis()])
  for (const one of [server, keeper, database, cluster, set, ...nodes]) stops.push(() => one.stop())
  const master = await set.master()
  const seeds = (first: number): { host: string; port: number }[] =>
    [first, ...cluster.nodes.slice(1).map(({ port }) => port)].map(port => ({ host, port }))
  const sentinels = (first: number): { host: string; port: number }[] =>
    [first, ...set.sentinels.slice(1).map(({ port }) => port)].map(port => ({ host, port }))
  const kill = { disconnect: () => master.call('CLIENT', 'KILL', 'TYPE', 'normal') }
  const name = SentinelSet.group
  Object.assign(engines, {
    etcd: { first: server.port, open: first => etcd({ endpoints: [`${host}:${first}`, `${host}:${server.port}`] }) },
    ZooKeeper: {
      first: keeper.port,
      open: first => zookeeper({ servers: [`${host}:${first}`, `${host}:${keeper.port}`] }),
    },
    'PostgreSQL over postgres.js': {
      first: database.port,
      open(first) {
        const target = { host: [host, host], port: [first, database.port], database: 'postgres', user: 'postgres' }
        return postgres(postgresJs(target as object), { create: true })
      },
    },
    Redlock: {
      first: nodes[0].port,
      open: first =>
        redlock(
          [first, nodes[1].port, nodes[2].port].map(port => new Redis({ host, port, lazyConnect: true })),
          { trustRestarted: true },
        ),
    },
    'Redis Cluster over ioredis': {
      first: cluster.nodes[0]?.port ?? 0,
      open: first => redis(new Cluster(seeds(first), { lazyConnect: true })),
    },
    'Redis Cluster over node-redis': {
      first: cluster.nodes[0]?.port ?? 0,
      open: first =>
        redis(createCluster({ rootNodes: seeds(first).map(socket => ({ socket })) }).on('error', () => {})),
    },
    'Redis Sentinel over ioredis': {
      first: set.sentinels[0]?.port ?? 0,
      open: first => redis(new Redis({ sentinels: sentinels(first), name, lazyConnect: true })),
      ...kill,
    },
    'Redis Sentinel over node-redis': {
      first: set.sentinels[0]?.port ?? 0,
      open: first => redis(createSentinel({ name, sentinelRootNodes: sentinels(first) }).on('error', () => {})),
      ...kill,
    },
  } satisfies Record<string, Engine>)
})
afterAll(() => Promise.all(stops.map(stop => stop())))

const deaths: Record<string, (proxy: TcpProxy) => unknown> = {
  async refused(proxy) {
    await proxy.refuse()
    proxy.reset()
  },
  silent: proxy => proxy.cut(/^/),
}

describe.each([
  'etcd',
  'ZooKeeper',
  'PostgreSQL over postgres.js',
  'Redlock',
  'Redis Cluster over ioredis',
  'Redis Cluster over node-redis',
  'Redis Sentinel over ioredis',
  'Redis Sentinel over node-redis',
])('%s', name => {
  test.each(Object.keys(deaths))('is served although its first address is %s, at the start and later', async death => {
    const { first, open, disconnect } = engines[name] as Engine
    const die = deaths[death] as (proxy: TcpProxy) => unknown
    await using proxy = await startProxy({ port: first })
    await using old = open(proxy.port)
    await until('it serves', () => hold(old, claimOf(`${name} ${death}`)))
    await die(proxy)
    await disconnect?.()
    await using fresh = open(proxy.port)
    for (const [when, store] of Object.entries({ later: old, 'at the start': fresh })) {
      const claim = (): Promise<bigint> => hold(store, claimOf(`${name} ${death} ${when} ${performance.now()}`))
      await until(`it serves ${when}`, claim, { limit: 20_000, every: 100 })
    }
  })
})

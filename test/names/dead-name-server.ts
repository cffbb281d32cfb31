import { createSocket } from 'node:dgram'
import { lookup } from 'node:dns/promises'
import { setTimeout } from 'node:timers/promises'
import { Cluster, Redis } from 'ioredis'
import { Cluster as Cluster5, Redis as Redis5 } from 'ioredis5'
import { Redis as Valkey, Cluster as ValkeyCluster } from 'iovalkey'
import mysql2 from 'mysql2'
import pg from 'pg'
import postgresJs from 'postgres'
import { createClient, createCluster, createSentinel } from 'redis'
import { createClient as createClient4 } from 'redis4'
import type { Store } from '../../src/contract/store.ts'
import { createLocks } from '../../src/create-locks.ts'
import { etcd } from '../../src/stores/etcd/index.ts'
import { mysql } from '../../src/stores/mysql/index.ts'
import { postgres } from '../../src/stores/postgres/index.ts'
import { type RedisClient, redis } from '../../src/stores/redis/index.ts'
import { zookeeper } from '../../src/stores/zookeeper/index.ts'

// In a network whose name server is silent: all clients try to acquire for 8 s, from the same host. Prints how many look-ups
// of it were pending at most, and whether `localhost` was found for other code while one was.

const quiet = <Client extends { on(event: 'error', listener: () => void): unknown }>(client: Client): Client => {
  client.on('error', () => {})
  return client
}
const at = { host: 'gone.test', port: 1 }
const sentinels = { sentinels: [{ ...at }], name: 'x', lazyConnect: true }
const overRedis: RedisClient[] = [
  new Redis({ ...at, lazyConnect: true }),
  new Redis5({ ...at, lazyConnect: true }),
  new Valkey({ ...at, lazyConnect: true }),
  new Redis({ ...at, tls: {}, lazyConnect: true }),
  new Redis(sentinels),
  new Redis5(sentinels),
  new Valkey(sentinels),
  quiet(new Cluster([{ ...at }], { lazyConnect: true })),
  quiet(new Cluster5([{ ...at }], { lazyConnect: true })),
  quiet(new ValkeyCluster([{ ...at }], { lazyConnect: true })),
  quiet(createClient({ socket: { ...at } })),
  quiet(createClient4({ socket: { ...at } })),
  quiet(createSentinel({ name: 'x', sentinelRootNodes: [{ ...at }] })),
  quiet(createCluster({ rootNodes: [{ socket: { ...at } }] })),
]
const stores: Store[] = [
  ...overRedis.map(client => redis(client)),
  postgres(new pg.Pool({ ...at })),
  postgres(postgresJs({ ...at })),
  mysql(mysql2.createPool({ ...at, database: 'x' })),
  etcd({ endpoints: ['gone.test:1'] }),
  zookeeper({ servers: 'gone.test:1' }),
]
const pending = (): number => process.getActiveResourcesInfo().filter(kind => kind === 'GetAddrInfoReqWrap').length

// It takes requests and never answers.
const server = createSocket('udp4').unref()
await new Promise<void>(resolve => void server.bind(53, '127.0.0.1', resolve))
const all = stores.map(store => createLocks(store, { ttl: 3_000 }))
const end = performance.now() + 8_000
let most = 0
while (performance.now() < end) {
  for (const locks of all) locks.tryAcquire('a').catch(() => {})
  await setTimeout(200)
  most = Math.max(most, pending())
}
await lookup('localhost')
process.stdout.write(JSON.stringify({ most, isOneLeft: pending() > 0 }))
process.exit()

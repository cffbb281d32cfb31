import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { GlideClient } from '@valkey/valkey-glide'
import { Cluster, Redis } from 'ioredis'
import { Cluster as Cluster5, Redis as Redis5 } from 'ioredis5'
import { Redis as Valkey, Cluster as ValkeyCluster } from 'iovalkey'
import { createClient, createClientPool, createCluster, createSentinel } from 'redis'
import { createClient as createClient4, createCluster as createCluster4 } from 'redis4'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type RedisCluster, startCluster } from '../../../../lab/servers/cluster.ts'
import { type Port, reservePort } from '../../../../lab/servers/port.ts'
import { startProxy } from '../../../../lab/servers/proxy.ts'
import { type RedisServer, startRedis } from '../../../../lab/servers/redis.ts'
import { SentinelSet, startSentinel } from '../../../../lab/servers/sentinel.ts'
import { ROOT } from '../../../../test/script-node.ts'
import { LeaseError } from '../../../contract/errors.ts'
import { type RedisClient, redis } from '../index.ts'
import { acquire, claimOf, failureOf, hold, host, signal, storeOf } from './support.ts'

// A server that requires all of these at once. So each option that is lost makes a request fail, or shows in CLIENT LIST.
const [username, password, keyPrefix, db, name] = ['app', 'secret', 'app:', 3, 'reports']
const user = `${username} on >${password} ~${keyPrefix}holdfast:* &${keyPrefix}holdfast:* +@all`
const certificate = (file: string): string => join(ROOT, 'test/certificates', file)
const [ca, cert, key] = ['ca.pem', 'client.pem', 'client.key'].map(file => readFileSync(certificate(file), 'utf8'))
const tls = { ca, cert, key } as { ca: string; cert: string; key: string }

const ports: Port[] = []
const tlsLines = (port: Port): Record<string, string | number> => ({
  'tls-port': port.number,
  'tls-cert-file': certificate('server.pem'),
  'tls-key-file': certificate('server.key'),
  'tls-ca-cert-file': certificate('ca.pem'),
  'tls-auth-clients': 'yes',
})

async function securePort(): Promise<Port> {
  const port = await reservePort()
  ports.push(port)
  return port
}

let server: RedisServer
let cluster: RedisCluster
let set: SentinelSet
let secure: number
const secureNodes: { host: string; port: number }[] = []

beforeAll(async () => {
  const port = await securePort()
  secure = port.number
  server = await startRedis({ password: 'admin', users: [user], config: tlsLines(port) })
  set = await startSentinel({ password: 'admin', users: [user] })
  cluster = await startCluster({
    password: 'admin',
    async lines() {
      const own = await securePort()
      secureNodes.push({ host, port: own.number })
      const config = Object.entries({ ...tlsLines(own), 'tls-cluster': 'yes' })
      return [`user ${user}`, ...config.map(([option, value]) => `${option} ${value}`)]
    },
  })
})
afterAll(async () => {
  await Promise.all([server, set, cluster].map(each => each?.stop()))
  for (const port of ports) await port.release()
})

interface Owned {
  readonly client: RedisClient
  end?(): unknown
}

const lazy = { lazyConnect: true, keyPrefix, username, password, connectTimeout: 3_000 }
const socket = (): object => ({ host, port: secure, tls: true, connectTimeout: 3_000, ...tls })
const url = (): string => `rediss://${username}:${password}@${host}:${secure}/${db}`

const single: Record<string, () => Owned> = {
  'ioredis 6': () => ({ client: new Redis({ ...lazy, port: secure, db, tls, connectionName: name }) }),
  'ioredis 6 by URL': () => ({ client: new Redis(url(), { lazyConnect: true, keyPrefix, tls, connectionName: name }) }),
  'ioredis 5': () => ({ client: new Redis5({ ...lazy, port: secure, db, tls, connectionName: name }) }),
  iovalkey: () => ({ client: new Valkey({ ...lazy, port: secure, db, tls, connectionName: name }) }),
  'node-redis': () => ({
    client: createClient({ username, password, keyPrefix, database: db, name, socket: socket() }),
  }),
  'node-redis by URL': () => ({
    client: createClient({ url: url(), keyPrefix, name, socket: { tls: true, ...tls } }),
  }),
  'node-redis with a provider of credentials': () => ({
    client: createClient({
      credentialsProvider: { type: 'async-credentials-provider', credentials: async () => ({ username, password }) },
      keyPrefix,
      database: db,
      name,
      socket: socket(),
    }),
  }),
  // It has no key prefix.
  'node-redis 4': () => ({ client: createClient4({ username, password, database: db, name, socket: socket() }) }),
}

const sentinels = (): { host: string; port: number }[] => set.sentinels.map(({ port }) => ({ host, port }))
const login = { sentinelPassword: 'admin', name: SentinelSet.group, connectionName: name, role: 'slave' } as const

const withSentinel: Record<string, () => Owned> = {
  'ioredis 6': () => ({ client: new Redis({ ...lazy, ...login, db, sentinels: sentinels() }) }),
  'ioredis 5': () => ({ client: new Redis5({ ...lazy, ...login, db, sentinels: sentinels() }) }),
  iovalkey: () => ({ client: new Valkey({ ...lazy, ...login, db, sentinels: sentinels() }) }),
  'node-redis': () => ({
    client: createSentinel({
      name: SentinelSet.group,
      keyPrefix,
      sentinelRootNodes: sentinels(),
      sentinelClientOptions: { password: 'admin' },
      nodeClientOptions: { username, password, database: db, name },
    }),
  }),
}

const node = { username, password, tls, connectionName: name, connectTimeout: 3_000 }
const defaults = { username, password, name, socket: { tls: true as const, ...tls } }
const rootNodes = (): { socket: object }[] => secureNodes.map(each => ({ socket: { ...each, tls: true, ...tls } }))

const clusters: Record<string, () => Owned> = {
  'ioredis 6': () => ({ client: new Cluster(secureNodes, { lazyConnect: true, keyPrefix, redisOptions: node }) }),
  'ioredis 5': () => ({ client: new Cluster5(secureNodes, { lazyConnect: true, keyPrefix, redisOptions: node }) }),
  'ioredis 5 with the key prefix of nodes': () => ({
    client: new Cluster5(secureNodes, { lazyConnect: true, redisOptions: { ...node, keyPrefix } }),
  }),
  iovalkey: () => ({ client: new ValkeyCluster(secureNodes, { lazyConnect: true, keyPrefix, redisOptions: node }) }),
  'node-redis': () => ({ client: createCluster({ rootNodes: rootNodes(), keyPrefix, defaults }) }),
  'node-redis 4': () => ({ client: createCluster4({ rootNodes: rootNodes(), defaults }) }),
}

interface Seen {
  readonly user: string
  readonly db: string
  readonly name: string
}

/** The connections of the user to these servers, as they list them. */
async function seenBy(servers: readonly RedisServer[]): Promise<Seen[]> {
  const lists = await Promise.all(servers.map(each => each.call('CLIENT', 'LIST')))
  return lists
    .flatMap(list => String(list).split('\n'))
    .map(line => Object.fromEntries(Array.from(line.matchAll(/([\w-]+)=(\S*)/g), ([, field, value]) => [field, value])))
    .filter(fields => fields.user === username)
    .map(fields => ({ user: fields.user, db: fields.db, name: fields.name }) as Seen)
}

/** Holds a name and waits for it, so that the store has both of its connections. */
async function use(owned: Owned, prefix: string | undefined, servers: () => Promise<readonly RedisServer[]>) {
  const store = storeOf(owned.client, prefix)
  const [claim, waiter] = [claimOf('a', { ttl: 30_000 }), claimOf('a', { ttl: 30_000, queue: true })]
  await patiently(() => hold(store, claim))
  expect(await patiently(() => acquire(store, waiter))).toMatchObject({ held: false })
  await store.watch?.(waiter, () => {}, signal)
  const seen = await seenBy(await servers())
  for (const each of [claim, waiter]) await store.release(each, signal)
  await store[Symbol.asyncDispose]()
  await owned.end?.()
  return seen
}

/** On a busy machine a client may take longer to connect than a request may. A lost option is never retryable. */
async function patiently<Result>(ask: () => Promise<Result>): Promise<Result> {
  for (let tries = 1; ; tries += 1) {
    try {
      return await ask()
    } catch (error) {
      if (!LeaseError.is(error) || !error.retryable || tries === 5) throw error
    }
  }
}

/** The permissions of the user refuse every other prefix. */
const prefixFor = (client: string): string | undefined => (client === 'node-redis 4' ? 'app:holdfast' : undefined)

describe.each(Object.entries(single))('%s', (client, create) => {
  test('own connections have the prefix, login, TLS, client certificate, database and name of the client', async () => {
    const seen = await use(create(), prefixFor(client), async () => [server])
    expect(seen.length).toBeGreaterThanOrEqual(2)
    for (const each of seen) expect(each).toEqual({ user: username, db: String(db), name })
  })
})

describe.each(Object.entries(withSentinel))('%s through Sentinel', (_, create) => {
  test('own connections have the prefix, login, database and name of the client, and go to the master', async () => {
    const seen = await use(create(), undefined, async () => [await set.master()])
    expect(seen.length).toBeGreaterThanOrEqual(2)
    for (const each of seen) expect(each).toEqual({ user: username, db: String(db), name })
  })
})

describe.each(Object.entries(clusters))('%s over a cluster', (client, create) => {
  test('own connections have the prefix, login, TLS, client certificate and name of the client', async () => {
    const seen = await use(create(), prefixFor(client), async () => cluster.nodes)
    expect(seen.length).toBeGreaterThanOrEqual(2)
    // ioredis names its connections to subscribe, and to find nodes, after their purpose too.
    for (const each of seen) expect(each.name).toContain(name)
  })
})

describe('addresses that a client maps', () => {
  const mapped: Record<string, (map: Record<string, { host: string; port: number }>) => RedisClient> = {
    'ioredis 6': natMap => new Cluster(plainNodes(), { lazyConnect: true, keyPrefix, natMap, redisOptions: plain }),
    'ioredis 5': natMap => new Cluster5(plainNodes(), { lazyConnect: true, keyPrefix, natMap, redisOptions: plain }),
    iovalkey: natMap => new ValkeyCluster(plainNodes(), { lazyConnect: true, keyPrefix, natMap, redisOptions: plain }),
    'node-redis': nodeAddressMap =>
      createCluster({
        rootNodes: plainNodes().map(each => ({ socket: each })),
        keyPrefix,
        nodeAddressMap,
        defaults: { username, password },
      }),
  }
  const plain = { username, password }
  const plainNodes = (): { host: string; port: number }[] => cluster.nodes.map(({ port }) => ({ host, port }))

  test.each(Object.entries(mapped))('are used by own connections of %s over a cluster', async (_, create) => {
    const proxies = await Promise.all(cluster.nodes.map(startProxy))
    const map = cluster.nodes.map(({ port }, i) => [`${host}:${port}`, { host, port: proxies[i]?.port as number }])
    const store = storeOf(create(Object.fromEntries(map)))
    const claim = claimOf('mapped', { ttl: 30_000 })
    await patiently(() => hold(store, claim))
    expect(proxies.some(({ connections }) => connections > 0)).toBe(true)
    expect(await store.release(claim, signal)).toBe('released')
    await store[Symbol.asyncDispose]()
    for (const proxy of proxies) await proxy.stop()
  })

  test('are used by own connections of ioredis through Sentinel', async () => {
    const master = await set.master()
    await using proxy = await startProxy(master)
    const natMap = { [`${host}:${master.port}`]: { host, port: proxy.port } }
    await using store = storeOf(new Redis({ ...lazy, ...login, db, sentinels: sentinels(), natMap }))
    await patiently(() => hold(store, claimOf('mapped', { ttl: 30_000 })))
    expect(proxy.connections).toBeGreaterThan(0)
  })
})

test.each<[string, () => RedisClient]>([
  ['ioredis 6', () => new Cluster(secureNodes, { lazyConnect: true, redisOptions: wrong })],
  ['ioredis 5', () => new Cluster5(secureNodes, { lazyConnect: true, redisOptions: wrong })],
  ['iovalkey', () => new ValkeyCluster(secureNodes, { lazyConnect: true, redisOptions: wrong })],
  ['node-redis', () => createCluster({ rootNodes: rootNodes(), defaults: { ...defaults, password: 'wrong' } })],
  ['node-redis 4', () => createCluster4({ rootNodes: rootNodes(), defaults: { ...defaults, password: 'wrong' } })],
])('a wrong password over a cluster of %s is called that, not a cluster that cannot be reached', async (_, create) => {
  await using store = storeOf(create())
  expect(await failureOf(patiently(() => hold(store, claimOf('a', { ttl: 30_000 }))))).toMatchObject({
    code: 'ACCESS_DENIED',
    message: expect.stringMatching(/refused the user or password/),
  })
})
const wrong = { ...node, password: 'wrong' }

test('a pool of node-redis, and a client of valkey-glide, are used themselves: the pool with its prefix', async () => {
  const pool = await poolOf()
  const pooled = await use({ client: pool, end: () => pool.close() }, undefined, async () => [server])
  const glide = await GlideClient.createClient({
    addresses: [{ host, port: server.port }],
    credentials: { username, password },
    databaseId: db,
    clientName: name,
    requestTimeout: 2_000,
  })
  const own = await use({ client: glide, end: () => glide.close() }, 'app:holdfast', async () => [server])
  expect(pooled.length).toBeGreaterThan(0)
  expect(own.length).toBeGreaterThan(0)
  for (const each of [...pooled, ...own]) expect(each).toEqual({ user: username, db: String(db), name })
})

test('processes with the same key prefix exclude each other, whichever client has it', async () => {
  const pool = await poolOf()
  const clients = [
    pool,
    ...Object.entries(single).map(([client, create]) => prefixFor(client) === undefined && create()),
  ]
  const stores = clients.flatMap(owned => (owned ? [redis('client' in owned ? owned.client : owned)] : []))
  const claim = claimOf('shared', { ttl: 30_000 })
  const tokens = []
  for (const store of stores) tokens.push(await patiently(() => hold(store, claim)))
  expect(new Set(tokens).size).toBe(1)
  for (const store of stores) await store[Symbol.asyncDispose]()
  await pool.close()
})

async function poolOf() {
  const pool = createClientPool({ username, password, keyPrefix, database: db, name, socket: socket() })
  pool.on('error', () => {}) // at the end of the server
  await pool.connect()
  return pool
}

test.each([
  ['a client', () => createClient(), 'options'],
  ['a cluster', () => createCluster({ rootNodes: [] }), '_options'],
  ['a sentinel client', () => createSentinel({ name: 'a', sentinelRootNodes: [] }), '_keyPrefix'],
  ['a pool', () => createClientPool(), '_keyPrefix'],
])('%s of node-redis that does not show its options is refused, not used without them', (_, create, field) => {
  const hidden = new Proxy(create(), { has: (target, key) => key !== field && key in target })
  expect(() => redis(hidden)).toThrow(
    expect.objectContaining({
      code: 'INVALID_ARGUMENT',
      message: expect.stringMatching(`its field ${field} is missing`),
    }),
  )
})

test('a sentinel client of node-redis whose duplicate does not show its options is refused', () => {
  const hidden = Object.assign(createSentinel({ name: 'a', sentinelRootNodes: [] }), { duplicate: () => ({}) })
  expect(() => redis(hidden)).toThrow(
    expect.objectContaining({
      code: 'INVALID_ARGUMENT',
      message: expect.stringMatching('its field #options is missing'),
    }),
  )
})

test('a client of ioredis that does not show the database that it selected is refused', async () => {
  const client = new Redis({ port: server.port, password: 'admin' })
  await client.ping()
  const hidden = new Proxy(client, { has: (target, field) => field !== 'condition' && field in target })
  expect(() => redis(client)).not.toThrow()
  expect(() => redis(hidden)).toThrow(expect.objectContaining({ code: 'INVALID_ARGUMENT' }))
  client.disconnect()
})

test('a key prefix that is not UTF-8 is refused, for other keys would be used', () => {
  const client = createClient({ keyPrefix: Buffer.from([0xff]) })
  expect(() => redis(client)).toThrow(expect.objectContaining({ code: 'INVALID_ARGUMENT' }))
  expect(() => redis(createClient({ keyPrefix: Buffer.from('app:') }))).not.toThrow()
})

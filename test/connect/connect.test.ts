import { execFile } from 'node:child_process'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { Cluster, Redis } from 'ioredis'
import { createClient, createCluster, createSentinel } from 'redis'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { type EtcdServer, startEtcd } from '../../lab/servers/etcd.ts'
import { type MariaDbServer, startMariaDb } from '../../lab/servers/mariadb.ts'
import { reservePort } from '../../lab/servers/port.ts'
import { type PostgresServer, startPostgres } from '../../lab/servers/postgres.ts'
import { startProxy } from '../../lab/servers/proxy.ts'
import { type RedisServer, startRedis } from '../../lab/servers/redis.ts'
import { startZooKeeper, type ZooKeeperServer } from '../../lab/servers/zookeeper.ts'
import { connect, createLocks, subscribe } from '../../src/index.ts'
import { redis as storeOver } from '../../src/stores/redis/index.ts'
import { failureOf } from '../support.ts'

// A refusal that is not reported at once would exceed this.
vi.setConfig({ testTimeout: 60_000, hookTimeout: 60_000 })

const SECRET = 's3cret'

let redis: RedisServer
let postgres: PostgresServer
let mysql: MariaDbServer
let etcd: EtcdServer
let keeper: ZooKeeperServer

const zookeeper = (): string => `zookeeper://127.0.0.1:${keeper.port}`

beforeAll(async () => {
  ;[redis, postgres, mysql, etcd, keeper] = await Promise.all([
    startRedis({ users: [`app on >${SECRET} ~other:* &* +@all`] }),
    startPostgres({ password: SECRET }),
    startMariaDb({ password: SECRET }),
    startEtcd(),
    startZooKeeper(),
  ])
  await postgres.query(`create role app login password '${SECRET}'`)
})
afterAll(() => Promise.all([redis, postgres, mysql, etcd, keeper].map(server => server?.stop())))

/** What each store refuses for good. */
const refusals: [what: string, url: () => string, code: string, message: RegExp][] = [
  ['a wrong password of Redis', () => redis.url.replace('://', '://app:wrong@'), 'ACCESS_DENIED', /WRONGPASS/],
  ['a user of Redis without rights', () => redis.url.replace('://', `://app:${SECRET}@`), 'ACCESS_DENIED', /grant/],
  ['TLS to a plain port of Redis', () => redis.url.replace('redis:', 'rediss:'), 'INVALID_ARGUMENT', /TLS/],
  ['a wrong password of PostgreSQL', () => postgres.url('postgres', 'wrong'), 'ACCESS_DENIED', /user name or password/],
  ['TLS to PostgreSQL without it', () => `${postgres.url()}?sslmode=require`, 'INVALID_ARGUMENT', /TLS/],
  ['PostgreSQL without tables', () => postgres.url(), 'NOT_MIGRATED', /holdfast migrate/],
  ['a wrong password of MySQL', () => mysql.url('app', 'wrong'), 'ACCESS_DENIED', /user name or password/],
  ['TLS to MySQL without it', () => `${mysql.url()}?tls=true`, 'INVALID_ARGUMENT', /TLS/],
  ['MySQL without tables', () => mysql.url(), 'NOT_MIGRATED', /holdfast migrate/],
  ['TLS to etcd without it', () => `etcds://127.0.0.1:${etcd.port}`, 'INVALID_ARGUMENT', /does not speak TLS/],
  ['TLS to ZooKeeper without it', () => `${zookeeper()}?tls=true`, 'INVALID_ARGUMENT', /does not speak TLS/],
  ['a missing database of MySQL', () => `${mysql.url()}x`, 'INVALID_ARGUMENT', /database does not exist/],
]

describe.each(refusals)('%s', (_, url, code, message) => {
  const refused = { code, retryable: false, message: expect.stringMatching(message) }

  test('is reported by connect at once', async () => {
    const error = await failureOf(connect(url(), { timeout: Number.POSITIVE_INFINITY }))
    expect(error).toMatchObject(refused)
    expect(error.message).not.toContain(SECRET)
  })

  test('is reported by every call at once, not after a ttl', async () => {
    const locks = await connect(url(), { lazy: true, ttl: 600_000 })
    for (const call of [() => locks.ping(), () => locks.acquire('a'), () => locks.inspect('a'), () => locks.break('a')])
      expect(await failureOf(call())).toMatchObject(refused)
    await locks.close()
  })
})

test('a user who may not read the tables is refused by connect', async () => {
  await postgres.query('create database granted')
  const url = (user?: string): string => postgres.url(user, SECRET).replace(/\/postgres$/, '/granted')
  await (await connect(`${url()}?create=true`)).close()
  expect(await failureOf(connect(url('app'), { timeout: Number.POSITIVE_INFINITY }))).toMatchObject({
    code: 'ACCESS_DENIED',
    message: expect.stringMatching(/permission denied for schema holdfast/),
  })
})

test('connect asks a server that is down until it answers', async () => {
  const late = await startRedis()
  await late.kill()
  const { promise: isRefused, resolve } = Promise.withResolvers<object>()
  const stop = subscribe('request_failed', resolve)
  const connecting = connect(late.url, { timeout: Number.POSITIVE_INFINITY, owner: 'me' })
  expect(await isRefused).toMatchObject({
    request: 'ping',
    owner: 'me',
    error: { message: expect.stringMatching(/ECONNREFUSED/) },
  })
  stop()
  await late.start()
  await using locks = await connecting
  await using lease = await locks.acquire('a')
  lease.assertHeld()
  await late.stop()
})

test('a URL of PostgreSQL or MySQL to a Redis is answered with the suspicion that it is another server', async () => {
  const at = `127.0.0.1:${redis.port}/app`
  for (const url of [`postgres://${at}`, `mysql://app@${at}`])
    expect(await failureOf(connect(url, { timeout: 2_500 }))).toMatchObject({
      code: 'STORE_UNAVAILABLE',
      message: expect.stringMatching(/did not answer within .*; perhaps it is another kind of server \(asked for 2500/),
    })
})

test('a ping, and a call of locks that did not connect, say what to check when the server is down', async () => {
  const port = await reservePort()
  await using locks = await connect(`redis://127.0.0.1:${port.number}`, { lazy: true, ttl: 500 })
  for (const call of [() => locks.ping(), () => locks.acquire('a'), () => locks.inspect('a')])
    await expect(call()).rejects.toThrow(/ECONNREFUSED.*: check its address, and that it runs$/)
  await port.release()
})

test('a store that is down, or silent, is reported after the timeout with the reason', async () => {
  await using silent = await startProxy(redis)
  silent.down.drop()
  const port = await reservePort()
  for (const [url, message] of [
    [
      `redis://127.0.0.1:${port.number}`,
      /^Redis cannot be reached: .*ECONNREFUSED.*: check its address, and that it runs \(asked for 300 ms\)$/,
    ],
    [
      `redis://127.0.0.1:${silent.port}`,
      /^the store did not answer within 300 ms: check its address, and that it runs$/,
    ],
  ] as const)
    expect(await failureOf(connect(url, { timeout: 300 }))).toMatchObject({
      code: 'STORE_UNAVAILABLE',
      retryable: true,
      message: expect.stringMatching(message),
    })
  await port.release()
})

test('a majority of Redlock must answer', async () => {
  const servers = await Promise.all([startRedis(), startRedis(), startRedis()])
  const url = `redlock://${servers.map(({ host, port }) => `${host}:${port}`).join(',')}`
  await servers[0]?.kill()
  const locks = await connect(`${url}?nodeTimeout=3000`) // with two of three, both must answer
  await locks.ping()
  await locks.close()
  await servers[1]?.kill()
  expect(await failureOf(connect(url, { timeout: 500 }))).toMatchObject({
    code: 'STORE_UNAVAILABLE',
    message: expect.stringMatching(/no majority of the 3 nodes is available/),
  })
  await Promise.all(servers.map(server => server.stop()))
})

test('a server of Redlock that refuses the login is reported although the others are a majority', async () => {
  const servers = await Promise.all([startRedis(), startRedis(), startRedis({ password: SECRET })])
  const url = `redlock://${servers.map(({ host, port }) => `${host}:${port}`).join(',')}`
  expect(await failureOf(connect(url))).toMatchObject({
    code: 'ACCESS_DENIED',
    message: expect.stringContaining(String(servers[2]?.port)),
  })
  await Promise.all(servers.map(server => server.stop()))
})

test('an abort ends connect and ping with its reason', async () => {
  await using silent = await startProxy(redis)
  silent.down.drop()
  const url = `redis://127.0.0.1:${silent.port}`
  const abort = new AbortController()
  const connecting = failureOf(connect(url, { signal: abort.signal }))
  await using locks = await connect(url, { lazy: true })
  const asking = failureOf(locks.ping({ signal: abort.signal }))
  const reason = new Error('over')
  abort.abort(reason)
  expect(await connecting).toBe(reason)
  expect(await asking).toBe(reason)
  await expect(connect(url, { signal: abort.signal })).rejects.toBe(reason)
  await expect(locks.ping({ signal: abort.signal })).rejects.toBe(reason)
})

test('ping answers whether the store serves now', async () => {
  await using server = await startRedis()
  await using proxy = await startProxy(server)
  const locks = await connect(`redis://127.0.0.1:${proxy.port}`)
  await locks.ping()
  expect(await Array.fromAsync(locks.list())).toEqual([])
  proxy.down.drop()
  expect(await failureOf(locks.ping())).toMatchObject({ code: 'STORE_UNAVAILABLE', retryable: true })
  await locks.close()
  expect(await failureOf(locks.ping())).toMatchObject({ code: 'CLOSED' })
})

test('ping over clients that would connect for ever rejects', async () => {
  const port = await reservePort()
  const place = { host: '127.0.0.1', port: port.number }
  const clients = [
    new Redis({ ...place, lazyConnect: true }),
    new Redis({ sentinels: [place], name: 'mymaster', lazyConnect: true }),
    new Cluster([place], { lazyConnect: true }),
    createClient({ socket: place }),
    createCluster({ rootNodes: [{ socket: place }] }),
    createSentinel({ name: 'mymaster', sentinelRootNodes: [place] }),
  ]
  for (const client of clients) {
    await using locks = createLocks(storeOver(client))
    expect(await failureOf(locks.ping())).toMatchObject({ code: 'STORE_UNAVAILABLE', retryable: true })
  }
  await port.release()
})

test('a replica of Redis is refused by the first acquire at once, although it can be read', async () => {
  await using replica = await startRedis({ replicaOf: redis })
  await using locks = await connect(replica.url, { ttl: 600_000 })
  expect(await failureOf(locks.acquire('a'))).toMatchObject({
    retryable: false,
    message: expect.stringMatching(/read-only replica: connect to its master/),
  })
})

test('close ends a ping', async () => {
  await using silent = await startProxy(redis)
  silent.down.drop()
  const locks = await connect(`redis://127.0.0.1:${silent.port}`, { lazy: true })
  const asking = failureOf(locks.ping())
  await locks.close()
  expect(await asking).toMatchObject({ code: 'CLOSED' })
})

test('SQLite says at once that a file cannot be one', async () => {
  expect(await failureOf(connect('sqlite:/dev/null', { timeout: Number.POSITIVE_INFINITY }))).toMatchObject({
    code: 'INVALID_ARGUMENT',
  })
  await using locks = await connect('memory:connect')
  await locks.ping()
})

test.each([
  [{ timeout: -1 }, 'timeout must be 0 or more milliseconds, or Infinity, not -1'],
  [{ timeout: '5s' }, 'timeout must be 0 or more milliseconds, or Infinity, not "5s"'],
  [{ lazy: 1 }, 'lazy must be true or false, not 1'],
  [{ signal: 'no' }, 'signal must be an AbortSignal, not "no"'],
  [{ tll: 1 }, 'connect has no option "tll", only ttl, note'],
])('connect refuses %o', async (options, message) => {
  await expect(connect('memory:', options as never)).rejects.toMatchObject({
    code: 'INVALID_ARGUMENT',
    message: expect.stringContaining(message),
  })
})

test('a process whose connect was rejected has nothing open, and ends by itself', async () => {
  const silent = createServer(() => {}).listen(0, '127.0.0.1')
  await new Promise(resolve => silent.once('listening', resolve))
  const { port } = silent.address() as { port: number }
  const free = await reservePort()
  const urls = [port, free.number].flatMap(number => [
    `redis://127.0.0.1:${number}`,
    `rediss://127.0.0.1:${number}`,
    `redlock://127.0.0.1:${number},127.0.0.2:${number},127.0.0.3:${number}`,
    `postgres://app@127.0.0.1:${number}/app`,
    `postgres://app@127.0.0.1:${number}/app?sslmode=require`,
    `mysql://app@127.0.0.1:${number}/app`,
    `etcd://127.0.0.1:${number}`,
    `etcds://127.0.0.1:${number}`,
    `zookeeper://127.0.0.1:${number}`,
    `zookeeper://127.0.0.1:${number}?tls=true`,
  ])
  urls.push(...refusals.map(([, url]) => url()))
  const script = `
    import { connect } from ${JSON.stringify(join(import.meta.dirname, '../../src/index.ts'))}
    for (const url of ${JSON.stringify(urls)}) {
      const { code } = await connect(url, { timeout: 300 }).catch(error => error)
      for (;;) {
        await new Promise(setImmediate) // a socket that was destroyed closes in the next turn
        if (!process.getActiveResourcesInfo().some(each => /TCP|TLS|Timeout|DNS/.test(each))) break
      }
      console.log(code)
    }
    await connect(${JSON.stringify(urls[0])}, { signal: AbortSignal.timeout(100), timeout: Infinity }).catch(() => {})`
  const flags = process.features.typescript
    ? []
    : ['--experimental-strip-types', '--disable-warning=ExperimentalWarning']
  const run = promisify(execFile)(process.execPath, [...flags, '--input-type=module', '-e', script], {
    timeout: 50_000,
  })
  const { stdout } = await run // rejects if something stays open
  expect(stdout.trim().split('\n')).toEqual(urls.map(() => expect.stringMatching(/^[A-Z_]+$/)))
  silent.close()
  await free.release()
})

import { once } from 'node:events'
import { createServer as createHttp } from 'node:http'
import { type AddressInfo, createServer, type Server } from 'node:net'
import { inspect } from 'node:util'
import { Redis } from 'ioredis'
import { createPool } from 'mysql2'
import { Pool } from 'pg'
import { createClient } from 'redis'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { startMariaDb } from '../lab/servers/mariadb.ts'
import { startRedis } from '../lab/servers/redis.ts'
import { holdfast } from '../src/cli/test/holdfast.ts'
import { events } from '../src/contract/events.ts'
import { dashboard } from '../src/dashboard/dashboard.ts'
import { httpObjects, objectFence } from '../src/fencing/objects/index.ts'
import { createLocks, type LeaseEvents, type Locks, subscribe } from '../src/index.ts'
import { openMarks } from '../src/marks.ts'
import { openStore, type Store } from '../src/store.ts'
import { etcd } from '../src/stores/etcd/index.ts'
import { mysql } from '../src/stores/mysql/index.ts'
import { postgres } from '../src/stores/postgres/index.ts'
import { redis } from '../src/stores/redis/index.ts'
import { redlock } from '../src/stores/redlock/index.ts'
import { zookeeper } from '../src/stores/zookeeper/index.ts'

// Nothing that is emitted may have a secret in it, in any of these forms.
const SECRET = 'S3cr?t/Pw+9'
const CODED = encodeURIComponent(SECRET)
const FORMS = [
  SECRET,
  CODED,
  ...['', 'u:', 'app:', 'Bearer '].map(before => Buffer.from(before + SECRET).toString('base64')),
]

/** What was emitted, with what it is of. */
let emitted: [of: string, text: string][]
const collect = (of: string, what: unknown): void => {
  const text = typeof what === 'string' ? what : inspect(what, { depth: 20, showHidden: true, maxStringLength: null })
  emitted.push([of, text])
  if (what instanceof Error) emitted.push([of, `${what.stack}`], [of, JSON.stringify(what)])
}
const leaks = (): string[] =>
  emitted.flatMap(([of, text]) =>
    FORMS.filter(form => text.includes(form)).map(form =>
      `${of}: …${text.slice(Math.max(text.indexOf(form) - 150, 0))}`.slice(0, 400),
    ),
  )

const stops: (() => unknown)[] = []
const onWarning = (warning: Error): void => collect('a warning', warning)
let garbage: Server

beforeAll(async () => {
  emitted = []
  process.on('warning', onWarning)
  stops.push(() => process.off('warning', onWarning))
  for (const name of Object.keys(events) as (keyof LeaseEvents)[])
    stops.push(subscribe(name, event => collect(`the event ${name}`, event)))
  garbage = createServer(socket => socket.on('error', () => {}).end('HTTP/1.1 500 no\r\n\r\n-ERR what\r\n\u0000\u0001'))
  await once(garbage.listen(0, '127.0.0.1'), 'listening')
  stops.push(() => garbage.close())
})
afterAll(() => Promise.all(stops.map(stop => stop())))

const portOf = (server: Server): number => (server.address() as AddressInfo).port

/** The stores of all engines at a port, over URLs and options that have the secret. */
function storesAt(port: number): Record<string, () => Store | Promise<Store>> {
  const at = `127.0.0.1:${port}`
  const client = { host: '127.0.0.1', port, password: SECRET }
  const urls = [
    ...[`redis://u:${CODED}@${at}`, `rediss://u:${CODED}@${at}`, `redlock://u:${CODED}@${at},${at},${at}`],
    ...[`redlock://${at}?password=${CODED}`, `mysql://u:${CODED}@${at}/d`, `mysql://u:${CODED}@${at}/d?tls=true`],
    ...[`postgres://u:${CODED}@${at}/d`, `postgres://u:${CODED}@${at}/d?sslmode=verify-full`],
    `postgres://u:x@${at}/d?direct=${encodeURIComponent(`postgres://u:${CODED}@${at}/d`)}`,
    ...[`etcd://u:${CODED}@${at}`, `etcds://u:${CODED}@${at}`, `zookeeper://u:${CODED}@${at}`],
    `zookeeper://u:${CODED}@${at}/chroot?tls=true`,
    // Mistakes, each of which is refused.
    ...[
      `redis://u:${SECRET}@${at}`,
      `mysql://u:${SECRET}@${at}/d`,
      `postgres://u:${SECRET}@${at}/d`,
      `etcd://u:${SECRET}@${at}`,
    ],
    ...[
      `redis://${CODED}@${at}/x`,
      `mysql://u:${CODED}%ff@${at}/d`,
      `postgres://u:${CODED}%ff@${at}/d`,
      `etcd://${CODED}@${at}`,
    ],
    ...[
      `zookeeper://${CODED}@${at}`,
      `redlock://${at}?pass=${CODED}`,
      `etcds://${at}?key=${CODED}-----BEGIN`,
      `nosql://u:${CODED}@${at}`,
    ],
  ]
  return {
    ...Object.fromEntries(urls.map(url => [url, () => openStore(url)])),
    ioredis: () => redis(new Redis({ ...client, lazyConnect: true })),
    'node-redis': () => redis(createClient({ socket: { host: client.host, port }, password: SECRET })),
    'redlock of ioredis': () => redlock([0, 1, 2].map(db => new Redis({ ...client, db, lazyConnect: true }))),
    mysql2: () => mysql(createPool({ ...client, user: 'app', database: 'app' })),
    pg: () => postgres(new Pool({ ...client, user: 'u', database: 'd' })),
    etcd: () => etcd({ endpoints: [at], user: 'u', password: SECRET }),
    'etcd with TLS': () =>
      etcd({ endpoints: [at], tls: { key: `-----BEGIN ${SECRET}`, cert: 'x', passphrase: SECRET } }),
    zookeeper: () => zookeeper({ servers: at, auth: { user: 'u', password: SECRET }, tls: { passphrase: SECRET } }),
  }
}

/** Uses each store, and collects what is emitted. Resolves to how many could not be used. */
async function useAll(stores: Record<string, () => Store | Promise<Store>>): Promise<number> {
  let failed = 0
  await Promise.all(
    Object.entries(stores).map(async ([of, open]) => {
      const name = of.replaceAll(SECRET, '***').replaceAll(CODED, '***')
      const fail = (error: unknown): void => {
        failed += 1
        collect(name, error)
      }
      let locks: Locks
      try {
        locks = createLocks(await open(), { ttl: 2_000 })
      } catch (error) {
        return fail(error)
      }
      await locks.tryAcquire('a').catch(fail)
      await locks.inspect('a').catch(error => collect(name, error))
      const board = dashboard(locks, { authorize: () => 'operate' })
      const { body } = await board.fetch(new Request('http://localhost/?api=events'))
      collect(`the page of ${name}`, Buffer.from((await body?.getReader().read())?.value ?? []).toString())
      const headers = { 'sec-fetch-site': 'same-origin', 'x-holdfast-change': '1' }
      const query = 'http://localhost/?api=break&name=a&typed=a'
      collect(`the page of ${name}`, await (await board.fetch(new Request(query, { method: 'POST', headers }))).text())
      await board[Symbol.asyncDispose]()
      await locks.close({ grace: 0 })
    }),
  )
  return failed
}

test.each([
  ['is absent', () => 1],
  ['answers garbage', () => portOf(garbage)],
])('no store emits a secret if its server %s', { timeout: 120_000 }, async (_, port) => {
  const stores = storesAt(port())
  expect(await useAll(stores)).toBe(Object.keys(stores).length)
  expect(leaks()).toEqual([])
})

test('no store emits a secret if its server refuses it', { timeout: 120_000 }, async () => {
  await using server = await startRedis({ password: 'other' })
  await using maria = await startMariaDb({ password: 'other' })
  const [redisAt, mysqlAt] = [storesAt(server.port), storesAt(maria.port)]
  const chosen = {
    ...Object.fromEntries(['ioredis', 'node-redis', 'redlock of ioredis'].map(name => [name, redisAt[name]])),
    [`redis://:${CODED}@…`]: () => openStore(`redis://:${CODED}@127.0.0.1:${server.port}`),
    mysql2: mysqlAt.mysql2,
    [`mysql://app:${CODED}@…`]: () => openStore(`mysql://app:${CODED}@127.0.0.1:${maria.port}/app`),
  } as Record<string, () => Store | Promise<Store>>
  expect(await useAll(chosen)).toBe(Object.keys(chosen).length)
  expect(leaks()).toEqual([])
})

test('the command line prints no secret', { timeout: 180_000 }, async () => {
  const at = '127.0.0.1:1'
  const urls = [
    ...[`redis://u:${CODED}@${at}`, `redlock://${at},${at}?password=${CODED}`, `mysql://u:${CODED}@${at}/d`],
    ...[
      `postgres://u:${CODED}@${at}/d`,
      `etcd://u:${CODED}@${at}`,
      `zookeeper://u:${CODED}@${at}`,
      `redis://u:${SECRET}@${at}`,
    ],
  ]
  for (const url of urls) {
    const commands = [
      ['doctor'],
      ['run', 'a', '--wait', '0s', '--', 'true'],
      ['ls', '--json'],
      ['fence', 'ls', '--url', url],
    ]
    const results = await Promise.all(commands.map(args => holdfast(args, { env: { HOLDFAST_STORE: url } })))
    for (const { code, out, err } of results) {
      expect(code).not.toBe(0)
      collect(`the command line of ${url.split(':')[0]}`, out + err)
    }
  }
  expect(leaks()).toEqual([])
})

test('openMarks shows no secret', { timeout: 60_000 }, async () => {
  const at = '127.0.0.1:1'
  for (const url of [`redis://u:${CODED}@${at}`, `mysql://u:${CODED}@${at}/d`, `postgres://u:${CODED}@${at}/d`])
    await (async () => (await openMarks(url)).list())().then(
      () => expect.fail('it did not reject'),
      error => collect('openMarks', error),
    )
  expect(leaks()).toEqual([])
})

test('objects over HTTP show no secret', { timeout: 60_000 }, async () => {
  const service = createHttp((request, response) => {
    const answer = { '/newer': '{"fencing-token":"9","epoch":0,"written":true}\n' }[request.url?.split('?')[0] ?? '']
    if (answer) response.writeHead(200, { etag: '"a"' }).end(answer)
    else response.writeHead(403).end('no')
  })
  await once(service.listen(0, '127.0.0.1'), 'listening')
  stops.push(() => service.close())
  const bases = [`127.0.0.1:1`, `127.0.0.1:${portOf(garbage)}`, `127.0.0.1:${portOf(service as unknown as Server)}`]
  const lease = { name: 'a', token: 7n }
  const headers = { authorization: `Bearer ${SECRET}` }
  const sender = async (url: string): Promise<Response> => Promise.reject(new Error(`could not send to ${url}`))
  for (const base of bases)
    for (const url of [
      `http://${base}/newer?X-Amz-Signature=${CODED}`,
      `http://u:${CODED}@${base}/x`,
      `${base}?sig=${CODED}`,
    ])
      for (const objects of [httpObjects({ headers }), httpObjects({ headers, send: sender as never })]) {
        await objectFence(objects)
          .put(lease, url, 'x')
          .then(
            () => expect.fail('it did not reject'),
            error => collect('objects', error.message),
          )
        await objects.write(url, Buffer.from('x'), undefined).catch(error => collect('objects', error.message))
      }
  const broken = (): unknown => httpObjects({ headers: { authorization: `Bearer ${SECRET}\nx` } })
  expect(broken).toThrow('the header "authorization" cannot be sent')
  try {
    broken()
  } catch (error) {
    collect('objects', error)
  }
  expect(leaks()).toEqual([])
})

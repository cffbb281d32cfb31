import { Decoder, GlideClient } from '@valkey/valkey-glide'
import { Redis } from 'ioredis'
import { Redis as Redis5 } from 'ioredis5'
import { Redis as Valkey } from 'iovalkey'
import { createClient, createClientPool, RESP_TYPES } from 'redis'
import { createClient as createClient4 } from 'redis4'
import { afterAll, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest'
import { startProxy } from '../../../../lab/servers/proxy.ts'
import { type RedisServer, startRedis } from '../../../../lab/servers/redis.ts'
import { until } from '../../../../lab/servers/until.ts'
import { clients } from '../../../../test/harnesses/redis.ts'
import { driverOf } from '../driver.ts'
import { redis } from '../index.ts'
import { claimOf, failureOf, hold, host, look, signal, storeOf } from './support.ts'

let server: RedisServer

beforeAll(async () => {
  server = await startRedis()
})
afterAll(() => server.stop())
beforeEach(async () => {
  await server.call('FLUSHALL')
})

describe.each(Object.entries(clients))('%s', (name, create) => {
  test('closes only its own connections, and the client stays usable', async () => {
    await using proxy = await startProxy(server)
    const { client, close } = await create(proxy.port)
    const before = proxy.connections
    {
      await using store = storeOf(client)
      const claim = claimOf('a')
      await hold(store, claim)
      await store.watch?.(claim, () => {}, signal)
      expect(proxy.connections).toBe(before + (name === 'glide' ? 0 : 2))
    }
    await until('the connections of the store are closed', () => proxy.connections === before)
    expect(await answers(client)).toBe('PONG')
    await close()
  })

  test('has its own connection although the client is busy or gone', async () => {
    const { client, close } = await create(server.port)
    await using store = storeOf(client)
    if (name !== 'glide') await close()
    await hold(store, claimOf('a'))
    if (name === 'glide') await close()
  })

  test('opens nothing before the first request, and may be closed unused', async () => {
    await using proxy = await startProxy(server)
    const { client, close } = await create(proxy.port)
    const before = proxy.accepted
    await storeOf(client)[Symbol.asyncDispose]()
    expect(proxy.accepted).toBe(before)
    await close()
  })
})

describe.each([
  ['ioredis', 2, (port: number) => new Redis({ port })],
  ['ioredis5', 3, (port: number) => new Redis5({ port })],
  ['iovalkey', 4, (port: number) => new Valkey({ port })],
] as const)('%s', (_, db, connect) => {
  test('P2: uses the database that the client selected before', async () => {
    const selecting = connect(server.port)
    await selecting.select(db)
    await using selected = storeOf(selecting)
    await using named = storeOf(new Redis({ port: server.port, lazyConnect: true, db }))
    const claim = claimOf('a')
    expect(await hold(selected, claim)).toBe(await hold(named, claim))
    selecting.disconnect()
  })

  test('P2: stays in its database when the client selects another, and warns once', async () => {
    const warnings = vi.spyOn(process, 'emitWarning').mockImplementation(() => {})
    const client = connect(server.port)
    await using store = storeOf(client)
    await hold(store, claimOf('a'))
    expect(warnings).not.toHaveBeenCalled()
    await client.select(db)
    await hold(store, claimOf('b'))
    await hold(store, claimOf('c'))
    expect(warnings.mock.calls.map(([, options]) => options)).toEqual([
      { type: 'HoldfastWarning', code: 'HOLDFAST_DATABASE' },
    ])
    await using named = storeOf(new Redis({ port: server.port, lazyConnect: true, db: 0 }))
    expect(await look(named, { prefix: '' })).toHaveLength(3)
    warnings.mockRestore()
    client.disconnect()
  })
})

test('is not disturbed by a client that subscribes, monitors, is in a transaction, or has odd options', async () => {
  const odd = { port: server.port, stringNumbers: true, enableAutoPipelining: true, readOnly: true }
  for (const prepare of [
    (client: Redis) => client.subscribe('news'),
    (client: Redis) => client.multi({ pipeline: false }),
    (client: Redis) => client.call('CLIENT', 'REPLY', 'ON'),
  ]) {
    const client = new Redis(odd)
    await prepare(client)
    await using store = storeOf(client)
    const claim = claimOf('a')
    await hold(store, claim)
    await store.release(claim, signal)
    client.disconnect()
  }
  await using impatient = storeOf(new Redis({ ...odd, lazyConnect: true, commandTimeout: 0.001 }))
  await hold(impatient, claimOf('b'))
  const legacy = createClient4({ socket: { host, port: server.port }, legacyMode: true })
  await using store = storeOf(legacy)
  await hold(store, claimOf('c'))
})

test('uses a pool of node-redis itself, and waiters poll', async () => {
  const pool = createClientPool({ socket: { host, port: server.port } })
  await pool.connect()
  const store = storeOf(pool)
  expect(store.guarantees.waiting).toBe('polled')
  const claim = claimOf('a')
  await hold(store, claim)
  expect(await store.acquire(claimOf('a', { queue: true }), signal)).toMatchObject({ held: false, ahead: 0 })
  await store[Symbol.asyncDispose]()
  expect(await pool.ping()).toBe('PONG')
  await pool.close()
})

test('reads answers of a client that returns bytes', async () => {
  const addresses = [{ host, port: server.port }]
  const glide = await GlideClient.createClient({ addresses, defaultDecoder: Decoder.Bytes, requestTimeout: 2_000 })
  const mapped = createClient({
    socket: { host, port: server.port },
    commandOptions: { typeMapping: { [RESP_TYPES.BLOB_STRING]: Buffer } },
  })
  for (const client of [glide, mapped]) {
    const store = storeOf(client)
    const claim = claimOf('ä', { note: 'ü' })
    const token = await hold(store, claim)
    expect(await store.acquire(claimOf('ä'), signal)).toMatchObject({ held: false, holder: { token, note: 'ü' } })
    expect(await look(store, { prefix: 'ä' })).toMatchObject([{ name: 'ä', token }])
    expect(await store.release(claim, signal)).toBe('released')
    await store[Symbol.asyncDispose]()
  }
  glide.close()
})

test('refuses what is not a client, and says what to pass', () => {
  const client = new Redis({ lazyConnect: true })
  const wrong = [
    undefined,
    null,
    'redis://localhost',
    {},
    new Map(),
    client.pipeline(),
    client.multi(),
    createClient().multi(),
    createClient().legacy(),
  ]
  for (const thing of wrong) {
    expect(() => redis(thing as never)).toThrow(expect.objectContaining({ code: 'INVALID_ARGUMENT' }))
    expect(() => redis(thing as never)).toThrow(/pass (a client of ioredis|the client that made it)/)
  }
  for (const prefix of ['', 'a\n', 'x'.repeat(300), 'a{}b', 5])
    expect(() => redis(client, { prefix: prefix as string })).toThrow(/prefix/)
  expect(() => redis(client, { perfix: 'a' } as never)).toThrow(/no option "perfix", only prefix/)
})

test('F10: refuses ioredis-mock and node_redis 3 by name, and says what to use', () => {
  class RedisMock {
    keyspaceEvents = {}
    call(): void {}
    duplicate(): void {}
  }
  class RedisClient {
    sendCommand(): void {}
    internal_send_command(): void {}
    duplicate(): void {}
  }
  expect(() => redis(new RedisMock() as never)).toThrow(/a client of ioredis-mock, .*: use memory\(\)/)
  expect(() => redis(new RedisClient() as never)).toThrow(
    /a client of redis 3 \(node_redis\) .*: use redis 4.7 or later/,
  )
})

test.each([
  ['of one server', {}],
  ['of a cluster', { isCluster: true }],
  ['whose options are null', { options: null }],
])('refuses a mock of a client of ioredis %s, and says what to use', (_, rest) => {
  const mock = { call() {}, duplicate() {}, sendCommand() {}, ...rest }
  expect(() => redis(mock as never)).toThrow(expect.objectContaining({ code: 'INVALID_ARGUMENT' }))
  expect(() => redis(mock as never)).toThrow(/a client of ioredis without options, such as a mock: use memory\(\)/)
})

test('distinguishes a cluster client from a client of one server', () => {
  expect(driverOf(new Redis.Cluster([{ host, port: 1 }], { lazyConnect: true })).isCluster).toBe(true)
  expect(driverOf(new Redis({ lazyConnect: true })).isCluster).toBe(false)
})

test('rejects at once with the reason when no server listens', async () => {
  await using down = await startRedis()
  await down.kill()
  for (const create of [clients.ioredis, clients.iovalkey, clients['node-redis'], clients['node-redis4']]) {
    const { client } = (await create?.(down.port)) ?? {}
    await using store = storeOf(client as Redis)
    const error = await failureOf(hold(store, claimOf('a')))
    expect(error).toMatchObject({ code: 'STORE_UNAVAILABLE', retryable: true })
    expect(error.message).toMatch(`Redis cannot be reached: connect ECONNREFUSED 127.0.0.1:${down.port}`)
    expect(error.cause).toMatchObject({ code: 'ECONNREFUSED' })
  }
})

async function answers(client: unknown): Promise<unknown> {
  const { call, sendCommand, customCommand, connect, isOpen } = client as Record<
    string,
    (...args: unknown[]) => unknown
  >
  if (call) return call.call(client, 'PING')
  if (customCommand) return customCommand.call(client, ['PING'])
  if (!isOpen) await connect?.call(client)
  const answer = await sendCommand?.call(client, ['PING'])
  await (client as { disconnect(): Promise<void> }).disconnect()
  return answer
}

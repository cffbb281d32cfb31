import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { inspect } from 'node:util'
import { GlideClient } from '@valkey/valkey-glide'
import { Redis } from 'ioredis'
import { Redis as Redis5 } from 'ioredis5'
import { Redis as Valkey } from 'iovalkey'
import { createClient } from 'redis'
import { createClient as createClient4 } from 'redis4'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type RedisServer, startRedis } from '../../../../lab/servers/redis.ts'
import { until } from '../../../../lab/servers/until.ts'
import type { Owned } from '../../../../test/harnesses/redis.ts'
import { createLocks } from '../../../index.ts'
import type { RedisClient } from '../index.ts'
import { acquire, claimOf, failureOf, hold, host, look, signal, storeOf } from './support.ts'

const secret = 'p@ss:w/rd#%'

// As the documentation says it.
const page = readFileSync(join(import.meta.dirname, '../../../../docs/stores/redis.md'), 'utf8')
const least = /^(~holdfast:\S+ .*)$/m.exec(page)?.[1] ?? ''

let server: RedisServer

beforeAll(async () => {
  const without = (what: string): string => least.replace(what, '')
  server = await startRedis({
    users: [
      `least on >${secret} ${least}`,
      `nothing on >${secret} ~* &* +time +evalsha +eval +info`,
      `elsewhere on >${secret} ${without('~holdfast:*')} ~other:*`,
      `deaf on >${secret} ${without('&holdfast:*')} resetchannels`,
      `selects on >${secret} ${least} +select`,
      `blind on >${secret} ${without('+scan')}`,
    ],
  })
})
afterAll(() => server.stop())

type As = (username: string, password?: string) => Promise<Owned>

const ioredis: As = async (username, password = secret) => {
  const client = new Redis({ port: server.port, username, password, lazyConnect: true })
  return { client, close: () => client.disconnect() }
}

const clients: Record<string, As> = {
  ioredis,
  iovalkey: async (username, password = secret) => {
    const client = new Valkey({ port: server.port, username, password, lazyConnect: true })
    return { client, close: () => client.disconnect() }
  },
  'node-redis': async (username, password = secret) => {
    return { client: createClient({ socket: { host, port: server.port }, username, password }), close: () => {} }
  },
  'node-redis4': async (username, password = secret) => {
    return { client: createClient4({ socket: { host, port: server.port }, username, password }), close: () => {} }
  },
  async glide(username, password = secret) {
    const addresses = [{ host, port: server.port }]
    const client = await GlideClient.createClient({
      addresses,
      credentials: { username, password },
      requestTimeout: 2_000,
    })
    return { client, close: () => client.close() }
  },
}

describe.each(Object.entries(clients))('%s', (name, as) => {
  test('does everything with the permissions that the documentation lists', async () => {
    const { client, close } = await as('least')
    const store = storeOf(client)
    const [first, second] = [claimOf(`${name} a`), claimOf(`${name} a`, { queue: true })]
    await hold(store, first)
    let woken = false
    expect(await store.acquire(second, signal)).toMatchObject({ held: false, ahead: 0 })
    await store.watch?.(second, () => (woken = true), signal)
    expect(await store.renew(first, signal)).toMatchObject({ held: true })
    expect(await store.annotate(first, signal)).toBe(true)
    expect(await look(store, { prefix: name })).toHaveLength(2)
    expect(await store.release(first, signal)).toBe('released')
    if (store.watch) await until('the waiter is woken', () => woken)
    await hold(store, second)
    expect(await store.break(second.name, { by: 'test' }, signal)).toBeTypeOf('bigint')
    expect(await store.release(claimOf(`${name} a`), signal)).toBe('gone')
    const permits = createLocks(store).semaphore(`${name} permits`, { limit: 3 })
    const held = [await permits.acquire(), await permits.acquire({ permits: 2 })]
    const waiting = permits.acquire()
    for (const permit of held) expect(await permit.release()).toBe('released')
    expect(await (await waiting).release()).toBe('released')
    await store[Symbol.asyncDispose]()
    await close()
  })

  test('says that the password is wrong, and never which it was', async () => {
    if (name === 'glide') {
      // Its client cannot be created.
      await expect(as('least', 'wrong')).rejects.toThrow(/AuthenticationFailed|WRONGPASS/)
      return
    }
    const { client } = await as('least', 'a wrong one')
    await using store = storeOf(client)
    const error = await failureOf(hold(store, claimOf('a')))
    expect(error).toMatchObject({ code: 'ACCESS_DENIED', retryable: false })
    expect(error.message).toMatch('Redis refused the user or password: correct them')
    expect(error.message).toMatch('WRONGPASS')
    expect(inspect(error, { depth: 10, showHidden: true })).not.toMatch('a wrong one')
  })

  test('names the permission that is missing', async () => {
    const said: Record<string, string> = {}
    for (const user of ['nothing', 'elsewhere', 'blind']) {
      const { client, close } = await as(user)
      const store = storeOf(client)
      const error = await failureOf(user === 'blind' ? look(store, { prefix: '' }) : hold(store, claimOf('a')))
      expect(error).toMatchObject({ code: 'ACCESS_DENIED', retryable: false })
      expect(error.message).toMatch('grant the permissions listed in docs/stores/redis.md')
      if (user !== 'blind')
        expect(await failureOf(store.annotate(claimOf('a'), signal))).toMatchObject({ code: 'ACCESS_DENIED' })
      said[user] = error.message
      await store[Symbol.asyncDispose]()
      await close()
    }
    expect(said).toMatchObject({
      nothing: expect.stringMatching(/'m?get'|can't run this command/),
      elsewhere: expect.stringMatching(/key/),
      blind: expect.stringMatching(/scan/),
    })
  })
})

test('needs no more permissions when the position of a waiter lapses', async () => {
  const { client, close } = await ioredis('least')
  const store = storeOf(client)
  const [holder, lapsing] = [claimOf('lapsing'), claimOf('lapsing', { queue: true, ttl: 1_000 })]
  await hold(store, holder)
  await acquire(store, lapsing)
  const answer = await until('it lapses', async () => {
    const answer = await acquire(store, claimOf('lapsing')).catch(error => error)
    return answer.ahead !== 1 && answer
  })
  expect(answer).toMatchObject({ held: false, ahead: 0 })
  await store[Symbol.asyncDispose]()
  await close()
})

test('needs one more permission for another database, and never uses database 0 instead', async () => {
  const options = { port: server.port, password: secret, db: 1, lazyConnect: true }
  const inDatabase = (username: string): RedisClient[] => [
    new Redis({ ...options, username }),
    new Redis5({ ...options, username }),
    new Valkey({ ...options, username }),
    createClient({ socket: { host, port: server.port }, database: 1, username, password: secret }),
    createClient4({ socket: { host, port: server.port }, database: 1, username, password: secret }),
  ]
  for (const client of inDatabase('selects')) {
    await using store = storeOf(client)
    const claim = claimOf('a')
    await hold(store, claim)
    expect(await server.info('keyspace')).toMatchObject({ db1: expect.anything() })
    await store.release(claim, signal)
  }
  for (const client of inDatabase('least')) {
    await using store = storeOf(client)
    expect(await failureOf(hold(store, claimOf('elsewhere')))).toMatchObject({
      code: 'ACCESS_DENIED',
      message: expect.stringMatching(/permissions to run the 'select' command/),
    })
  }
  expect(await server.call('KEYS', '*elsewhere*')).toEqual([])
})

test('polls without the permission to subscribe, and its holders need none to publish', async () => {
  const { client, close } = await ioredis('deaf')
  await using store = storeOf(client)
  const [first, second] = [claimOf('d'), claimOf('d', { queue: true })]
  await hold(store, first)
  expect(await store.acquire(second, signal)).toMatchObject({ held: false, ahead: 0 })
  expect(await failureOf(store.watch?.(second, () => {}, signal) as Promise<void>)).toMatchObject({
    code: 'ACCESS_DENIED',
  })
  expect(await store.acquire(second, signal)).toMatchObject({ retryAfter: expect.closeTo(30, -2) })
  expect(await store.release(first, signal)).toBe('released')
  await hold(store, second)
  await close()
})

test('says that a password is missing', async () => {
  await using guarded = await startRedis({ password: secret })
  for (const client of [
    new Redis({ port: guarded.port, lazyConnect: true }),
    new Valkey({ port: guarded.port, lazyConnect: true }),
    createClient({ socket: { host, port: guarded.port } }),
    createClient4({ socket: { host, port: guarded.port } }),
  ] satisfies RedisClient[]) {
    await using store = storeOf(client)
    const error = await failureOf(hold(store, claimOf('a')))
    expect(error).toMatchObject({ code: 'ACCESS_DENIED', retryable: false })
    expect(error.message).toMatch(/asks for a password: none was given .*NOAUTH/)
  }
})

test('a replica, which may lack the lease, never says that it is gone', async () => {
  await using replica = await startRedis({ replicaOf: server })
  await using store = storeOf(new Redis({ port: replica.port, lazyConnect: true }))
  const claim = claimOf('not on the replica')
  const asked = [
    store.renew(claim, signal),
    store.annotate(claim, signal),
    store.break(claim.name, { by: 'test' }, signal),
  ]
  for (const answer of await Promise.allSettled(asked))
    expect(answer).toMatchObject({ reason: { message: expect.stringMatching(/is a read-only replica/) } })
})

test('a full server still says that a lease is gone', async () => {
  await using full = await startRedis()
  await using store = storeOf(new Redis({ port: full.port, lazyConnect: true }))
  const claim = claimOf('full')
  await hold(store, claim)
  await full.call('CONFIG', 'SET', 'maxmemory', '1')
  expect(await store.break('full', { by: 'test' }, signal)).toBeDefined()
  expect(await store.renew(claim, signal)).toBeUndefined()
  expect(await store.break('full', { by: 'test' }, signal)).toBeUndefined()
})

test('a full server keeps the positions of waiters, also of one that asks', async () => {
  await using full = await startRedis()
  await using store = storeOf(new Redis({ port: full.port, lazyConnect: true }))
  const [holder, waiter] = [claimOf('full', { ttl: 60_000 }), claimOf('full', { queue: true, ttl: 3_000 })]
  await hold(store, holder)
  const ended = new AbortController()
  let wakes = 0
  await acquire(store, waiter)
  const wake = (): void => {
    wakes += 1
  }
  await store.watch?.(waiter, wake, ended.signal)
  expect(await acquire(store, waiter)).toMatchObject({ kept: true })
  await full.call('CONFIG', 'SET', 'maxmemory', '1')
  expect(await acquire(store, waiter)).toMatchObject({ held: false, ahead: 0 })
  await sleep(6_000) // twice as long as its position lasts
  expect(await look(store, { name: 'full' })).toMatchObject([{ state: 'held' }, { state: 'waiting' }])
  const before = wakes
  expect(await store.release(holder, signal)).toBe('released')
  await until('the waiter is woken', () => wakes > before)
  ended.abort()
})

test('says that the server is a read-only replica', async () => {
  await using replica = await startRedis({ replicaOf: server })
  await using store = storeOf(new Redis({ port: replica.port, lazyConnect: true }))
  const error = await failureOf(hold(store, claimOf('a')))
  expect(error).toMatchObject({ code: 'STORE_UNAVAILABLE', retryable: false })
  expect(error.message).toMatch('the Redis server is a read-only replica: connect to its master')
})

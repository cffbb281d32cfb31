import { Redis } from 'ioredis'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { type RedisServer, startRedis } from '../../../../lab/servers/redis.ts'
import { monitor } from '../../../../test/monitor.ts'
import type { Claim, Store } from '../../../contract/store.ts'
import { acquire, claimOf, failureOf, hold, look, signal, storeOf } from './support.ts'

const KEY = 'holdfast:{:a}'
const LAST = '9007199254740991'

let server: RedisServer
let client: Redis
let store: Store

beforeAll(async () => {
  server = await startRedis()
})
afterAll(() => server.stop())
beforeEach(async () => {
  client = new Redis(server.port)
  await client.flushall()
  store = storeOf(client)
})
afterEach(async () => {
  await store[Symbol.asyncDispose]()
  client.disconnect()
})

const connections = async (): Promise<number> => Number((await server.info('stats')).total_connections_received)

describe('P1: a key of another type', () => {
  const verbs: Record<string, (claim: Claim) => Promise<unknown>> = {
    acquire: claim => hold(store, claim),
    renew: claim => store.renew(claim, signal),
    annotate: claim => store.annotate(claim, signal),
    release: claim => store.release(claim, signal),
    inspect: () => look(store, { name: 'a' }),
    break: () => store.break('a', { by: 'test' }, signal),
  }

  test.each(Object.entries(verbs))('P1: %s refuses it and leaves it as it is', async (_, ask) => {
    await client.hset(KEY, 'field', 'of another program')
    await hold(store, claimOf('other'))
    const before = await connections()
    expect(await failureOf(ask(claimOf('a')))).toMatchObject({
      code: 'STORE_UNAVAILABLE',
      retryable: false,
      message: expect.stringMatching(/^the key holdfast:\{:a\}, or one .* is of another type .* choose another prefix/),
    })
    expect(await client.hgetall(KEY)).toEqual({ field: 'of another program' })
    await hold(store, claimOf('next'))
    expect((await connections()) - before).toBe(1) // that which asks: the store keeps its own
  })

  test('P1: a queue of another type is refused too', async () => {
    await hold(store, claimOf('a'))
    await client.set(`${KEY}:line`, 'of another program')
    expect(await failureOf(acquire(store, claimOf('a', { queue: true })))).toMatchObject({
      code: 'STORE_UNAVAILABLE',
      retryable: false,
    })
    expect(await client.get(`${KEY}:line`)).toBe('of another program')
  })
})

test('a line break in the details of one name does not shift the answers for others', async () => {
  const ends = Date.now() + 60_000
  await client.set(KEY, `1 ${ends} held 0 5 60000 ${'a'.repeat(32)} ["o","one\n+9\ntwo"]`)
  const answers = await Promise.all(['a', 'b', 'c', 'a'].map(name => acquire(store, claimOf(name))))
  expect(answers.map(({ held }) => held)).toEqual([false, true, true, false])
})

test('L13: break ends a lease whose token cannot rise, and says how to start again', async () => {
  const ends = Date.now() + 10 ** 12
  await client.set(KEY, `1 ${ends} held 0 ${LAST} ${10 ** 12} ${'a'.repeat(32)} ["o","n"]`)
  expect(await look(store, { name: 'a' })).toMatchObject([{ state: 'held' }])
  const said = { code: 'STORE_UNAVAILABLE', retryable: false }
  expect(await failureOf(store.break('a', { by: 'test' }, signal))).toMatchObject({
    ...said,
    message: expect.stringMatching(
      /used up its tokens .*its lease was ended.*: to start again delete the key holdfast:\{:a\}/,
    ),
  })
  expect(await look(store, { name: 'a' })).toEqual([])
  expect(await store.break('a', { by: 'test' }, signal)).toBeUndefined()
  expect(await failureOf(hold(store, claimOf('a')))).toMatchObject({
    ...said,
    message: expect.stringMatching(/to start again delete the key holdfast:\{:a\}/),
  })
  await client.del(KEY)
  expect(await hold(store, claimOf('a'))).toBeLessThan(BigInt(LAST))
})

test('L11: a long queue is read in pages of at most 1,000 waiters for each script call', {
  timeout: 30_000,
}, async () => {
  const names = ['a', 'b']
  for (const name of names) await hold(store, claimOf(name, { ttl: 60_000 }))
  const claims = names.flatMap(name => Array.from({ length: 1_100 }, () => claimOf(name, { ttl: 60_000, queue: true })))
  await Promise.all(claims.map(claim => acquire(store, claim)))
  using watcher = await monitor(server)
  const found = await Promise.all(names.map(name => look(store, { name })))
  const pages = [0]
  for (const { command, args, inScript } of await watcher.all()) {
    if (!inScript) pages.push(0)
    else if (command === 'hmget') pages.push((pages.pop() ?? 0) + args.length - 1)
  }
  expect(Math.max(...pages)).toBe(1_000)
  expect(found.map(records => records.filter(({ state }) => state === 'held').length)).toEqual([1, 1])
  for (const [index, records] of found.entries()) {
    const waiters = records.filter(({ state }) => state === 'waiting')
    expect(waiters.map(({ position }) => position)).toEqual(Array.from({ length: 1_100 }, (_, place) => place))
    expect(waiters.every(({ name }) => name === names[index])).toBe(true)
  }
})

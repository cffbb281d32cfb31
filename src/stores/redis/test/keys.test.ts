import { Redis } from 'ioredis'
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest'
import { type RedisServer, startRedis } from '../../../../lab/servers/redis.ts'
import type { Store } from '../../../contract/store.ts'
import { LONGEST_REQUEST } from '../../../contract/time.ts'
import { acquire, claimOf, failureOf, hold, look, signal, storeOf } from './support.ts'

const HOUR = 3_600_000

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

/** Milliseconds until each key expires, by its suffix. */
async function lives(name: string): Promise<Record<string, number>> {
  const keys = await client.keys('*')
  const lease = `holdfast:{:${name}}`
  const own = keys.filter(key => key.startsWith(lease)).map(key => key.slice(lease.length))
  return Object.fromEntries(await Promise.all(own.map(async kind => [kind, await client.pttl(lease + kind)])))
}

/** The value of the key of a lease, without the time. */
async function value(name: string): Promise<string | undefined> {
  const text = await client.get(`holdfast:{:${name}}`)
  return text?.replace(/^1 \d{13} /, '')
}

test('writes the keys that README.md describes, and each expires', async () => {
  const claim = claimOf('a', { owner: 'host:1:abc', note: 'n "1"', ttl: 5_000 })
  const token = await hold(store, claim)
  const lease = `5000 ${claim.id} ["host:1:abc","n \\"1\\""]`
  expect(await value('a')).toBe(`held 0 ${token} ${lease}`)
  const waiting = claimOf('a', { queue: true, ttl: 8_000, owner: 'second' })
  await acquire(store, waiting)
  expect(await value('a')).toBe(`held 1 ${token} ${lease}`)
  expect(await client.zrange('holdfast:{:a}:line', '0', '-1')).toEqual([waiting.id])
  const arrival = await client.zscore('holdfast:{:a}:line', waiting.id)
  expect(await client.hget('holdfast:{:a}:claim', waiting.id)).toMatch(
    new RegExp(`^w holdfast:wake:[\\da-f]+ ${arrival} \\d+ 1 1 \\["second",""\\]$`),
  )
  const never = claimOf('a')
  await store.release(never, signal)
  const broken = await store.break('a', { by: 'me' }, signal)
  expect(await value('a')).toBe(`free 1 ${broken} ${lease}`)
  expect(await client.get(`holdfast:{:a}:gone:${never.id}`)).toBe('1')
  const left = await lives('a')
  const expected = {
    '': HOUR,
    line: 7_000,
    lapse: 7_000,
    claim: 7_000,
    [`gone:${never.id}`]: LONGEST_REQUEST,
  }
  for (const [kind, life] of Object.entries(expected)) {
    const key = kind && `:${kind}`
    expect(left[key], kind).toBeGreaterThan(life - 2_000)
    expect(left[key], kind).toBeLessThanOrEqual(life + 10_000)
  }
  expect(Object.keys(left)).toHaveLength(Object.keys(expected).length)
})

test('writes only the note of a lease, whatever its length', async () => {
  const claim = claimOf('a', { note: 'at first' })
  const token = await hold(store, claim)
  await client.pexpire('holdfast:{:a}', 60_000)
  const before = await client.get('holdfast:{:a}')
  expect(await store.annotate({ ...claim, note: 'a longer one', ttl: 60_000 }, signal)).toBe(true)
  expect(await client.get('holdfast:{:a}')).toBe(before?.replace('at first', 'a longer one'))
  expect(await store.annotate({ ...claim, note: '' }, signal)).toBe(true)
  expect(await client.get('holdfast:{:a}')).toBe(
    `${before?.replace('at first', '')}${' '.repeat('a longer one'.length)}`,
  )
  expect((await lives('a'))['']).toBeLessThanOrEqual(60_000)
  await acquire(store, claimOf('a', { queue: true }))
  expect(await store.annotate({ ...claim, note: 'with a line' }, signal)).toBe(true)
  expect(await value('a')).toMatch(`held 1 ${token} 10000 ${claim.id} ["test","with a line"]`)
})

test('writes no note of an expired lease, even if nobody acquired the name', async () => {
  const claim = claimOf('a')
  await hold(store, claim)
  await client.setrange('holdfast:{:a}', 2, String(Date.now() - 1_000))
  expect(await look(store, { name: 'a' })).toEqual([])
  const before = await client.get('holdfast:{:a}')
  expect(await store.annotate({ ...claim, note: 'late' }, signal)).toBe(false)
  expect(await client.get('holdfast:{:a}')).toBe(before)
})

test('leaves nothing of a released name but the counter of all names', async () => {
  const claim = claimOf('a')
  const token = await hold(store, claim)
  await store.renew(claim, signal)
  await store.release(claim, signal)
  expect(await client.keys('*')).toEqual(['holdfast:token'])
  expect(await client.get('holdfast:token')).toBe(String(token))
})

test('remembers a name that was not released for an hour', async () => {
  const claim = claimOf('a')
  await hold(store, claim)
  expect((await lives('a'))['']).toBeGreaterThan(claim.ttl + HOUR - 10_000)
  await store.break('a', { by: 'test' }, signal)
  expect((await lives('a'))['']).toBeGreaterThan(HOUR - 10_000)
})

test('outlives a lease of 24 days with its token', async () => {
  const claim = claimOf('a', { ttl: 2_147_483_647 })
  await hold(store, claim)
  expect((await lives('a'))['']).toBeGreaterThan(claim.ttl + HOUR - 10_000)
  await acquire(store, claimOf('a', { ttl: 2_147_483_647, queue: true }))
  const left = await lives('a')
  expect(left['']).toBeGreaterThan((left[':line'] ?? 0) + HOUR - 20_000)
  await store.release(claim, signal)
})

test('holds, renews and lists 10,000 names, and leaves one key', async () => {
  const claims = Array.from({ length: 10_000 }, (_, index) => claimOf(`job ${index}`, { ttl: 60_000 }))
  await Promise.all(claims.map(claim => hold(store, claim)))
  const renewed = await Promise.all(claims.map(claim => store.renew(claim, signal)))
  expect(renewed.every(grant => grant?.held)).toBe(true)
  expect(await look(store, { prefix: 'job ' })).toHaveLength(claims.length)
  await Promise.all(claims.map(claim => store.release(claim, signal)))
  const info = await client.info('keyspace')
  expect(info).toMatch(/keys=1,expires=0/)
})

test('keeps names separate', async () => {
  const names = [
    'a',
    'a:b',
    '{a}',
    '}',
    '{',
    '{}',
    '}{',
    'a}',
    'a}:gone',
    'a}:line',
    ':a',
    '*',
    'a*',
    '\\',
    '[a]',
    'ä',
    ' ',
  ]
  const claims = names.map(name => claimOf(name))
  const tokens = await Promise.all(claims.map(claim => hold(store, claim)))
  expect((await look(store, { prefix: '' })).map(record => record.name)).toEqual([...names].sort())
  for (const [index, claim] of claims.entries())
    expect(await store.renew(claim, signal)).toMatchObject({ token: tokens[index] })
  for (const claim of claims) expect(await store.release(claim, signal)).toBe('released')
})

test('raises tokens across FLUSHALL', async () => {
  const claim = claimOf('a')
  const token = await hold(store, claim)
  await client.flushall()
  expect(await store.renew(claim, signal)).toBeUndefined()
  expect(await hold(store, claimOf('a'))).toBeGreaterThan(token)
})

test('continues to work after SCRIPT FLUSH', async () => {
  await hold(store, claimOf('a'))
  await client.script('FLUSH')
  await hold(store, claimOf('b'))
})

test('refuses a name that another version wrote, and no other', async () => {
  await client.set('holdfast:{:new lease}', '2 something else')
  await client.set('holdfast:{:new token}', '2:17')
  for (const name of ['new lease', 'new token']) {
    const error = await failureOf(hold(store, claimOf(name)))
    expect(error).toMatchObject({ code: 'FORMAT_MISMATCH', retryable: false })
    expect(error.message).toMatch(/another version of Holdfast wrote the lease in format 2/)
  }
  expect(await client.get('holdfast:{:new lease}')).toBe('2 something else')
  const [outcome] = await Promise.all([failureOf(hold(store, claimOf('new lease'))), hold(store, claimOf('a'))])
  expect(outcome.code).toBe('FORMAT_MISMATCH')
})

test.each(['', ' x', '1 x'])('P1: refuses the value %j of another program', async value => {
  await client.set('holdfast:{:a}', value)
  const error = await failureOf(hold(store, claimOf('a')))
  expect(error).toMatchObject({ code: 'STORE_UNAVAILABLE', retryable: false })
  expect(error.message).toMatch(/holdfast:\{:a\} is not a lease: choose another prefix/)
  expect(await client.get('holdfast:{:a}')).toBe(value)
})

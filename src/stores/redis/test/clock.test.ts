import { Redis } from 'ioredis'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { type ShiftedClock, startClock } from '../../../../lab/servers/clock.ts'
import { type RedisServer, startRedis } from '../../../../lab/servers/redis.ts'
import { until } from '../../../../lab/servers/until.ts'
import type { Store } from '../../../contract/store.ts'
import { createLocks } from '../../../index.ts'
import { wakesAfterStep } from '../../wire/test/clock-steps.ts'
import { acquire, claimOf, hold, look, signal, storeOf } from './support.ts'

const HOUR = 3_600_000
const YEARS = 74 * 365 * 24 * HOUR

let clock: ShiftedClock
let server: RedisServer
let store: Store
let other: Store

beforeEach(async () => {
  clock = startClock()
  server = await startRedis({ clock })
  store = storeOf(new Redis({ port: server.port, lazyConnect: true }))
  other = storeOf(new Redis({ port: server.port, lazyConnect: true }))
  await hold(store, claimOf('warm'))
})
afterEach(async () => {
  await Promise.all([store, other].map(each => each[Symbol.asyncDispose]()))
  await server.stop()
  clock.stop()
})

wakesAfterStep(() => ({ stores: [store, other], clock }))

test('asks again at once, with the right time, when the clock of the server was set forward', async () => {
  clock.jumpWall(HOUR)
  const claim = claimOf('a')
  const token = await hold(store, claim)
  expect(await store.renew(claim, signal)).toMatchObject({ token })
  expect(await hold(store, claimOf('b'))).toBeGreaterThan(token)
})

test('keeps all leases that outlast the jump', async () => {
  const locks = createLocks(store, { ttl: 30_000 })
  const leases = await Promise.all(Array.from({ length: 50 }, (_, index) => locks.acquire(`held ${index}`)))
  clock.jumpWall(10_000)
  await Promise.all(leases.map(lease => lease.extend()))
  clock.jumpWall(-20_000)
  await Promise.all(leases.map(lease => lease.extend()))
  for (const lease of leases) lease.assertHeld()
  await Promise.all(leases.map(lease => lease.release()))
  await locks.close()
})

test('a lease that was extended by a clock set back ends after one more ttl, once another asks', async () => {
  const claim = claimOf('a', { ttl: 3_000 })
  await hold(store, claim)
  clock.jumpWall(-HOUR)
  const busy = await acquire(store, claimOf('a'))
  expect(busy).toMatchObject({ held: false, holder: { remaining: 3_000 } })
  await until('it has ended', async () => (await acquire(store, claimOf('a'))).held)
})

test('raises tokens although the clock went back, also those of a forgotten name, as long as the counter exists', async () => {
  const claim = claimOf('a')
  const token = await hold(store, claim)
  await store.release(claim, signal)
  expect(await server.call('EXISTS', 'holdfast:{:a}')).toBe(0)
  clock.jumpWall(-1_000 * HOUR)
  const later = claimOf('a')
  expect(await hold(store, later)).toBe(token + 1n)
  expect(await store.break('a', { by: 'test' }, signal)).toBe(token + 2n)
  expect(await hold(store, claimOf('a'))).toBe(token + 3n)
})

test('tokens fall if the counter is lost and the clock went back', async () => {
  const claim = claimOf('a')
  const token = await hold(store, claim)
  await store.release(claim, signal)
  await server.call('FLUSHALL')
  clock.jumpWall(-HOUR)
  expect(await hold(store, claimOf('a'))).toBeLessThan(token)
})

test('a server whose clock was in the year 2100 continues to count from there', async () => {
  clock.jumpWall(YEARS)
  const ahead = claimOf('a', { ttl: 1_000 })
  const token = await hold(store, ahead)
  expect(token).toBeGreaterThan(4_000_000_000_000_000n)
  await store.release(ahead, signal)
  clock.jumpWall(-YEARS)
  const claim = claimOf('a')
  expect(await hold(store, claim)).toBe(token + 1n)
  expect(await store.renew(claim, signal)).toMatchObject({ token: token + 1n })
  expect(await hold(store, claimOf('b'))).toBe(token + 2n)
  expect((await look(store, { name: 'a' }))[0]).toMatchObject({ token: token + 1n })
})

test('a name that is ahead of the counter is remembered by itself until its time', async () => {
  const token = BigInt(Date.now() + YEARS) * 1_000n
  await server.call('SET', 'holdfast:{:a}', `1 0000000000000 free 0 ${token} 1000 - []`)
  const claim = claimOf('a')
  expect(await hold(store, claim)).toBe(token + 1n)
  expect(await hold(store, claimOf('b'))).toBeLessThan(token)
  await store.release(claim, signal)
  expect(await server.call('PTTL', 'holdfast:{:a}')).toBeGreaterThan(YEARS - HOUR)
  expect(await hold(store, claimOf('a'))).toBe(token + 2n)
})

test.each(['9007199254740991', 'another program'])(
  'refuses the counter %s, and says how to start again',
  async value => {
    await server.call('SET', 'holdfast:token', value)
    await expect(hold(store, claimOf('a'))).rejects.toMatchObject({
      code: 'STORE_UNAVAILABLE',
      retryable: false,
      message: expect.stringMatching(
        /^the server has used up its tokens .*: to start again delete the key PREFIX:token/,
      ),
    })
  },
)

test('refuses a token above the largest exact integer', async () => {
  await server.call('SET', 'holdfast:{:a}', '1 0000000000000 free 0 9007199254740990 1000 - []')
  const last = claimOf('a')
  expect(await hold(store, last)).toBe(9_007_199_254_740_991n)
  await store.release(last, signal)
  await expect(hold(store, claimOf('a'))).rejects.toMatchObject({
    code: 'STORE_UNAVAILABLE',
    retryable: false,
    message: expect.stringMatching('the name has used up its tokens'),
  })
  await hold(store, claimOf('b'))
})

import { Redis } from 'ioredis'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type RedisServer, startRedis } from '../../../../lab/servers/redis.ts'
import { until } from '../../../../lab/servers/until.ts'
import { monitor } from '../../../../test/monitor.ts'
import { LoneRequests } from '../lone.ts'
import { acquire, claimOf, hold, signal, storeOf } from './support.ts'

const COUNTER = 'holdfast:token'
const ID = 'a'.repeat(32)

let server: RedisServer

beforeAll(async () => {
  server = await startRedis()
})
afterAll(() => server.stop())

const acquiring = (key: string) => ({
  verb: 'acquire',
  key,
  id: ID,
  parameters: '10000 3610000 1 []',
  until: undefined,
})
const isAlone = (lone: LoneRequests, key: string, sent: number, roundTrip = 1): boolean =>
  lone.callOf(acquiring(key), 0, sent, roundTrip) !== undefined

test('a name that was busy is asked of the script for ten seconds', () => {
  const lone = new LoneRequests(COUNTER)
  expect(isAlone(lone, 'a', 1_000)).toBe(true)
  lone.learn('a', '-1700000000000 0 1700000000000 7 []', 1_000)
  expect([isAlone(lone, 'a', 10_999), isAlone(lone, 'b', 10_999), isAlone(lone, 'a', 11_000)]).toEqual([
    false,
    true,
    true,
  ])
  lone.learn('b', '1', 1_000) // it had waiters
  expect(isAlone(lone, 'b', 1_001)).toBe(false)
})

test('a name is not busy that the script has granted, or of which a release knew nothing', () => {
  const lone = new LoneRequests(COUNTER)
  for (const answer of ['+7', '0', 'x', 'late', '!OOM']) lone.learn('a', answer, 1_000)
  expect(isAlone(lone, 'a', 1_001)).toBe(true)
})

test('at most 256 busy names are remembered', () => {
  const lone = new LoneRequests(COUNTER)
  for (let name = 0; name < 257; name++) lone.learn(String(name), '-', 1_000)
  expect([isAlone(lone, '0', 1_001), isAlone(lone, '256', 1_001)]).toEqual([true, false])
})

test('over a long round trip nothing is asked twice', () => {
  const lone = new LoneRequests(COUNTER)
  expect([isAlone(lone, 'a', 1_000, 2), isAlone(lone, 'a', 1_000, 2.1)]).toEqual([true, false])
})

test('other requests than acquire and release are asked of the script', () => {
  const lone = new LoneRequests(COUNTER)
  for (const verb of ['renew', 'annotate', 'break', 'inspect', 'keep'])
    expect(lone.callOf({ ...acquiring('a'), verb }, 0, 1_000, 1)).toBeUndefined()
})

test('a busy name is asked of the program, and then of the script with the same deadline', async () => {
  await using store = storeOf(new Redis({ port: server.port, lazyConnect: true }))
  await server.call('SET', COUNTER, '100')
  let names = 0
  // A round trip on a busy machine may be too long to ask twice.
  await until('a name is asked of both', async () => {
    const holder = claimOf(`name ${names++}`)
    await hold(store, holder)
    using watcher = await monitor(server)
    const claim = claimOf(holder.name)
    expect((await acquire(store, claim)).held).toBe(false)
    const calls = (await watcher.all()).filter(({ command }) => command.startsWith('eval')).map(({ args }) => args)
    await store.release(holder, signal)
    if (calls.length === 1) return false
    const [alone = [], script = []] = calls
    const key = `holdfast:{:${claim.name}}`
    expect(alone.slice(1, 5)).toEqual(['3', key, `${key}:gone:${claim.id}`, COUNTER])
    expect(script.at(-2)?.split(' ')[2]).toBe(alone[5])
    return true
  })
})

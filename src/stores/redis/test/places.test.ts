import { Redis } from 'ioredis'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { startProxy, type TcpProxy } from '../../../../lab/servers/proxy.ts'
import { type RedisServer, startRedis } from '../../../../lab/servers/redis.ts'
import { until } from '../../../../lab/servers/until.ts'
import { monitor } from '../../../../test/monitor.ts'
import { acquire, claimOf, hold, signal } from '../../../../test/support.ts'
import { keptPositions } from '../../wire/test/kept-positions.ts'
import { storeOf } from './support.ts'

const KEY = 'holdfast:{:a}'

let server: RedisServer
let proxy: TcpProxy

beforeAll(async () => {
  server = await startRedis()
  proxy = await startProxy(server)
})
afterAll(async () => {
  await proxy.stop()
  await server.stop()
})
beforeEach(() => server.call('FLUSHALL'))

keptPositions(() => ({
  proxy,
  storeBy: way => storeOf(new Redis({ port: (way === 'near' ? server : proxy).port, lazyConnect: true })),
  async loseFirst() {
    const [first = ''] = (await server.call('ZRANGE', `${KEY}:line`, 0, 0)) as string[]
    for (const key of [':line', ':lapse']) await server.call('ZREM', KEY + key, first)
    await server.call('HDEL', `${KEY}:claim`, first)
  },
  free: () => server.call('SET', KEY, `1 ${String(Date.now() - 500).padStart(13, '0')} free 1 5 1000 - []`),
  async requestsDuring(work) {
    using watcher = await monitor(server)
    await work()
    const calls = (await watcher.all()).filter(({ command, inScript }) => command.startsWith('evalsha') && !inScript)
    return calls.map(({ args }) => args.map(arg => /^[a-z]+(?= \d+ \d)/i.exec(arg)?.[0]).find(Boolean) ?? '')
  },
}))

test('keeping a position does not change the round trip that its claim states', async () => {
  await using store = storeOf(new Redis({ port: server.port, lazyConnect: true }))
  await hold(store, claimOf('a'))
  const waiter = claimOf('a', { queue: true, ttl: 3_000, roundTrip: 600 })
  await acquire(store, waiter)
  const stored = (): Promise<unknown> => server.call('HGET', `${KEY}:claim`, waiter.id)
  const lapses = (): Promise<unknown> => server.call('ZSCORE', `${KEY}:lapse`, waiter.id)
  const [before, first] = [await stored(), await lapses()]
  await store.watch?.(waiter, () => {}, signal)
  await until('it is kept', async () => (await lapses()) !== first)
  expect(await lapses()).not.toBeNull()
  expect(await stored()).toEqual(before)
})

import { Redis } from 'ioredis'
import { afterAll, beforeAll, beforeEach } from 'vitest'
import { startProxy, type TcpProxy } from '../../../../lab/servers/proxy.ts'
import { type RedisServer, startRedis } from '../../../../lab/servers/redis.ts'
import { monitor } from '../../../../test/monitor.ts'
import { keptPositions } from '../../shared/test/kept-positions.ts'
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

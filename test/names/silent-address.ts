import { type AddressInfo, connect, createServer, type Server } from 'node:net'
import { Redis } from 'ioredis'
import { Redis as Valkey } from 'iovalkey'
import { createClient } from 'redis'
import { startRedis } from '../../lab/servers/redis.ts'
import { until } from '../../lab/servers/until.ts'
import { createLocks } from '../../src/create-locks.ts'
import { redis } from '../../src/stores/redis/index.ts'

// `several.test` has two addresses. The first accepts connections and never answers. Prints which clients are served.

const server = await startRedis()
const silent = createServer(() => {})
const relay = createServer(client => {
  const upstream = connect(server.port, '127.0.0.1').on('error', () => client.destroy())
  client.on('error', () => upstream.destroy())
  client.pipe(upstream).pipe(client)
})
const listen = (one: Server, port: number, host: string): Promise<void> =>
  new Promise(resolve => void one.listen(port, host, resolve))
await listen(silent, 0, '127.0.0.1')
const { port } = silent.address() as AddressInfo
await listen(relay, port, '127.0.0.3')
const clients = {
  ioredis: new Redis({ host: 'several.test', port, lazyConnect: true }),
  iovalkey: new Valkey({ host: 'several.test', port, lazyConnect: true }),
  'node-redis': createClient({ socket: { host: 'several.test', port } }).on('error', () => {}),
}
const served: string[] = []
for (const [name, client] of Object.entries(clients)) {
  const locks = createLocks(redis(client), { ttl: 5_000 })
  const acquire = (): Promise<unknown> => locks.tryAcquire(name).catch(() => undefined)
  if (await until('it is served', acquire, { limit: 15_000 }).catch(() => undefined)) served.push(name)
}
await server.stop()
process.stdout.write(served.join())
process.exit()

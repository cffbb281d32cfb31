/** One address, such as a virtual IP or a proxy, that leads to another server after a failover. */
import { Redis } from 'ioredis'
import { test } from 'vitest'
import { startProxy } from '../../../../lab/servers/proxy.ts'
import { type RedisServer, startRedis } from '../../../../lab/servers/redis.ts'
import { followsTheAddress } from '../../wire/test/moved-address.ts'
import { host, storeOf } from './support.ts'

/** What happens to the old master. */
const ends: Readonly<Record<string, (old: RedisServer, master: RedisServer) => Promise<unknown>>> = {
  'became a replica': (old, master) => old.call('REPLICAOF', host, master.port),
  hangs: old => old.pause(),
}

test.each(Object.entries(ends))(
  'waiters are notified by the new master although the old one %s with its connections open',
  { timeout: 120_000 },
  async (_, end) => {
    await using old = await startRedis()
    await using replica = await startRedis({ replicaOf: old })
    const target = { port: old.port }
    await using proxy = await startProxy(target)
    await using waits = storeOf(new Redis({ port: proxy.port, lazyConnect: true }))
    await using holds = storeOf(new Redis({ port: proxy.port, lazyConnect: true }))
    await followsTheAddress({
      waits,
      holds,
      async failOver() {
        await old.replicatedTo(replica)
        await replica.call('REPLICAOF', 'NO', 'ONE')
        await end(old, replica)
        target.port = replica.port
      },
      isSubscribed: async () => ((await replica.call('PUBSUB', 'CHANNELS')) as string[]).length > 0,
    })
    old.resume()
  },
)

/**
 * Leases over Redis with your own ioredis client (`npm i holdfast ioredis`). Pass a client of node-redis, iovalkey or
 * valkey-glide in the same way.
 *
 *     REDIS_URL=redis://localhost:6379 ./script/node examples/redis.ts
 */
import { Redis } from 'ioredis'
import { createLocks } from '../src/index.ts' // in your project: 'holdfast'
import { redis } from '../src/stores/redis/index.ts' // 'holdfast/redis'

const client = new Redis(process.env.REDIS_URL ?? 'redis://localhost:6379')
client.on('error', error => console.error(error.message)) // without a listener ioredis prints every error
const locks = createLocks(redis(client), { ttl: 10_000 })

await locks.using('reports', { note: 'monthly reports', wait: 5_000 }, async lease => {
  console.log(`holding ${lease.name} with token ${lease.token}`)
  for await (const record of locks.list()) console.log(`${record.name} is held, with the note: ${record.note}`)
})

await locks.close()
await client.quit() // the client is yours: Holdfast neither configures nor closes it

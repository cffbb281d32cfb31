import { setTimeout as sleep } from 'node:timers/promises'
import { Redis } from 'ioredis'
import { createLocks } from '../../src/index.ts'
import { redis } from '../../src/stores/redis/index.ts'

// Once per instance, outside of the handler.
const client = new Redis(process.env.REDIS_URL ?? 'redis://localhost', { lazyConnect: true })
const locks = createLocks(redis(client), { ttl: 10_000 })

export async function handler(event: { readonly file: string }): Promise<{ readonly statusCode: number }> {
  const lease = await locks.tryAcquire(`import ${event.file}`, { maxHold: 25_000 })
  if (!lease) return { statusCode: 409 }
  try {
    await sleep(100, undefined, { signal: lease.signal }) // your work
    lease.assertHeld()
    return { statusCode: 200 }
  } finally {
    await lease.release() // before the answer: after it the instance may be frozen
  }
}

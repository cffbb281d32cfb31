import type { Store } from '../../src/store.ts'
import { type RedisClient, redis } from '../../src/stores/redis/index.ts'

export { acquire, claimOf, failureOf, hold, look, signal } from '../support.ts'

export const host = '127.0.0.1'

/** A store that ends with the test. */
export function storeOf(client: RedisClient, prefix?: string): Store {
  return redis(client, prefix === undefined ? {} : { prefix })
}

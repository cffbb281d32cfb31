import type { Store } from '../../../contract/store.ts'
import { type RedisClient, redis } from '../index.ts'

export { acquire, claimOf, failureOf, hold, look, signal } from '../../../../test/support.ts'

export const host = '127.0.0.1'

/** A store that ends with the test. */
export function storeOf(client: RedisClient, prefix?: string): Store {
  return redis(client, prefix === undefined ? {} : { prefix })
}

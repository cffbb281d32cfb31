import { checkKeys } from '../../contract/check.ts'
import type { Store } from '../../contract/store.ts'
import { type MinTtl, withMinTtl } from '../url/min-ttl.ts'
import { checkPrefix } from '../url/options.ts'
import type { RedisClient } from './client.ts'
import { driverOf } from './driver.ts'
import { RedisStore } from './store.ts'

export type { CallClient, CustomCommandClient, RedisClient, SendCommandClient } from './client.ts'

export interface RedisOptions extends MinTtl {
  /**
   * The prefix of all keys and channels. It follows the key prefix of the client. Leases with the same prefix exclude each
   * other. @default 'holdfast'
   */
  readonly prefix?: string | undefined
}

const optionKeys: ReadonlySet<string> = new Set(['prefix', 'minTtl'])

/**
 * A store in Redis or Valkey: a single server, Sentinel or Cluster. `client` is one of yours: ioredis >= 5, iovalkey,
 * node-redis >= 4.7 or valkey-glide >= 2. With the first request the store opens connections of its own with the same
 * settings, and `close()` closes those. Your client is neither configured nor closed. Only valkey-glide and a pool of
 * node-redis are used themselves.
 *
 *     const locks = createLocks(redis(new Redis('redis://localhost:6379', { lazyConnect: true })))
 *
 * Throws `INVALID_ARGUMENT` for any other client.
 */
export function redis(client: RedisClient, options: RedisOptions = {}): Store {
  checkKeys(options, optionKeys, 'redis')
  const { prefix = 'holdfast', minTtl } = options
  checkPrefix(prefix)
  return withMinTtl(new RedisStore(driverOf(client), prefix), minTtl)
}

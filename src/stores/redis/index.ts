import { checkKeys, checkText, invalid } from '../../contract/check.ts'
import type { Store } from '../../contract/store.ts'
import { type ShortestTtl, withShortestTtl } from '../shared/shortest-ttl.ts'
import type { RedisClient } from './client.ts'
import { driverOf } from './driver.ts'
import { RedisStore } from './store.ts'

export type { CallClient, CustomCommandClient, RedisClient, SendCommandClient } from './client.ts'

export interface RedisOptions extends ShortestTtl {
  /**
   * What all keys and channels begin with, after the key prefix of the client if it has one. Leases of one prefix
   * exclude each other. @default 'holdfast'
   */
  readonly prefix?: string | undefined
}

const optionKeys: ReadonlySet<string> = new Set(['prefix', 'shortestTtl'])

/**
 * Leases in Redis or Valkey, one node, Sentinel or Cluster, over a client that you have: ioredis >= 5, iovalkey,
 * node-redis >= 4.7 or valkey-glide >= 2. The client itself is neither configured nor closed: the store opens a
 * connection of its own like it (not of valkey-glide, nor of a pool), when the first request is made, and closes that.
 * Throws `INVALID_ARGUMENT` for what is no such client.
 */
export function redis(client: RedisClient, options: RedisOptions = {}): Store {
  checkKeys(options, optionKeys, 'redis')
  const { prefix = 'holdfast', shortestTtl } = options
  checkText(prefix, 'the prefix')
  if (prefix === '') throw invalid('the prefix is empty: leave it out, or give some text')
  return withShortestTtl(new RedisStore(driverOf(client), prefix), shortestTtl)
}

import { invalid } from '../../contract/check.ts'
import { can, type RedisDriver } from './client.ts'
import { glide } from './glide.ts'
import { ioredis } from './ioredis.ts'
import { nodeRedis } from './node-redis.ts'

/** Throws `INVALID_ARGUMENT` if it is not a client of Redis. `taker` names in the message the function that received it. */
export function driverOf(client: unknown, taker = 'redis(client)'): RedisDriver {
  const notAClient = (what: string): Error =>
    invalid(
      `${taker} was given ${what}: pass a client of ioredis, iovalkey, redis (node-redis) or @valkey/valkey-glide`,
    )
  if (client === null || client === undefined) throw notAClient(String(client))
  if (typeof client !== 'object') throw notAClient(`a ${typeof client}`)
  if ('isPipeline' in client || ('exec' in client && !('duplicate' in client) && !('customCommand' in client)))
    throw invalid(`${taker} was given a pipeline or transaction: pass the client that made it`)
  const unfit = unfitFor(client)
  if (unfit !== undefined) throw invalid(`${taker} was given a client of ${unfit}`)
  const driver = ioredis(client) ?? nodeRedis(client) ?? glide(client)
  if (!driver) throw notAClient(`an object of ${client.constructor?.name ?? 'no class'}`)
  return driver
}

/** What to use instead of clients that look like supported ones but cannot serve. */
function unfitFor(client: object): string | undefined {
  if ('keyspaceEvents' in client)
    return 'ioredis-mock, which does not run scripts as Redis does: use memory() in tests, or a Redis'
  if (can(client, 'call') && !(client as { options?: unknown }).options)
    return 'ioredis without options, such as a mock: use memory() in tests, or a Redis'
  if (can(client, 'internal_send_command'))
    return 'redis 3 (node_redis) or older: use redis 4.7 or later (npm i redis), or ioredis'
  return undefined
}

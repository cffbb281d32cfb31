import { LeaseError } from '../../contract/errors.ts'
import { warnOfClearPassword } from '../shared/clear-password.ts'
import { load, WHERE } from '../shared/load.ts'
import type { RedisClient } from './client.ts'

/** Where a server is, and how to be let in. */
export interface Target {
  readonly host: string
  readonly port: number
  readonly tls: boolean
  readonly username: string | undefined
  readonly password: string | undefined
  readonly database: number
}

type Module = Record<string, unknown>
type Constructor = new (options: object) => RedisClient

// In this order; only what makes an instance, for the store opens connections of its own from it.
const drivers: Record<string, (module: Module, target: Target) => RedisClient> = {
  ioredis: fromConstructor,
  redis: fromFunction,
  '@redis/client': fromFunction,
  iovalkey: fromConstructor,
}

function fromConstructor(module: Module, { host, port, tls, username, password, database }: Target): RedisClient {
  const Redis = (module.Redis ?? module.default) as Constructor
  return new Redis({ host, port, username, password, db: database, lazyConnect: true, ...(tls && { tls: {} }) })
}

function fromFunction(module: Module, { host, port, tls, username, password, database }: Target): RedisClient {
  const create = module.createClient as (options: object) => RedisClient
  return create({ socket: { host, port, ...(tls && { tls }) }, username, password, database })
}

/**
 * A client over ioredis, redis or iovalkey, whichever `load` finds first. `scheme` is for the message of `DRIVER_MISSING`.
 */
export function clientOf(target: Target, scheme: string): RedisClient {
  if (target.password !== undefined && !target.tls) warnOfClearPassword('Redis', target.host)
  for (const [name, make] of Object.entries(drivers)) {
    const module = load(name) as Module | undefined
    if (module) return make(module, target)
  }
  throw new LeaseError('DRIVER_MISSING', `a ${scheme} store needs a client of Redis: npm i ioredis ${WHERE}`)
}

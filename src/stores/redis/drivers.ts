import { createRequire } from 'node:module'
import { join } from 'node:path'
import { LeaseError } from '../../errors.ts'
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
 * A client over ioredis, redis or iovalkey, whichever is installed beside this package or in the project of the current
 * folder. `scheme` is for the message of `DRIVER_MISSING`.
 */
export function clientOf(target: Target, scheme: string): RedisClient {
  for (const [name, make] of Object.entries(drivers)) {
    const module = load(name)
    if (module) return make(module, target)
  }
  throw new LeaseError('DRIVER_MISSING', `a ${scheme} store needs a client of Redis: npm i ioredis`)
}

/**
 * The package as this one sees it, else as the project of the current folder does (`npx -p holdfast …`). By `require`,
 * which Jest can do without a flag; it loads ECMAScript modules too.
 */
function load(name: string): Module | undefined {
  for (const from of [import.meta.url, join(process.cwd(), 'any.js')]) {
    try {
      return createRequire(from)(name) as Module
    } catch (error) {
      if (!isMissing(error, name)) throw error
    }
  }
  return undefined
}

function isMissing(error: unknown, name: string): boolean {
  const { code, message } = error as NodeJS.ErrnoException
  return code === 'MODULE_NOT_FOUND' && message.includes(`'${name}'`)
}

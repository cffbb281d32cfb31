import { createRequire } from 'node:module'
import { join } from 'node:path'
import { invalid } from '../../check.ts'
import { LeaseError } from '../../errors.ts'
import type { Store } from '../../store.ts'
import type { RedisClient } from './client.ts'
import { redis } from './index.ts'

interface Target {
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
 * The store that `redis[s]://[user:password@]host[:port][/database][?prefix=…]` names, over ioredis, redis or iovalkey,
 * whichever is installed beside this package or in the project of the current folder.
 * @throws LeaseError INVALID_ARGUMENT for a URL that cannot be right, DRIVER_MISSING
 */
export async function openRedis(url: string): Promise<Store> {
  const { target, prefix } = parse(url)
  for (const [name, make] of Object.entries(drivers)) {
    const module = load(name)
    if (module) return redis(make(module, target), prefix === undefined ? {} : { prefix })
  }
  throw new LeaseError('DRIVER_MISSING', `a ${new URL(url).protocol} store needs a client of Redis: npm i ioredis`)
}

/** No message repeats the URL: it may hold a password. */
function parse(url: string): { target: Target; prefix: string | undefined } {
  const shape = 'write redis://[user:password@]host[:port][/database][?prefix=…], or rediss:// for TLS'
  const parsed = URL.canParse(url) ? new URL(url) : undefined
  if (!parsed)
    throw invalid(`the URL of the Redis store cannot be read: ${shape}; encode what is special in a password`)
  if (!parsed.hostname) throw invalid(`the URL of the Redis store names no host: ${shape}`)
  if (parsed.hash) throw invalid('the URL of the Redis store has a #: write it as %23')
  const [, database = '0'] = /^\/?(\d*)$/.exec(parsed.pathname) ?? []
  if (!/^\/?\d*$/.test(parsed.pathname))
    throw invalid(`the database of a Redis store is a number, as in redis://host/1, not ${parsed.pathname.slice(1)}`)
  for (const key of parsed.searchParams.keys()) {
    if (key !== 'prefix')
      throw invalid(`the URL of a Redis store has no option ${JSON.stringify(key)}; there is prefix`)
  }
  const prefixes = parsed.searchParams.getAll('prefix')
  if (prefixes.length > 1) throw invalid('the prefix is given twice in the URL of the Redis store')
  return {
    target: {
      host: parsed.hostname.replace(/^\[(.*)\]$/, '$1'),
      port: Number(parsed.port || 6379),
      tls: parsed.protocol === 'rediss:',
      username: decode(parsed.username),
      password: decode(parsed.password),
      database: Number(database),
    },
    prefix: prefixes[0],
  }
}

function decode(part: string): string | undefined {
  try {
    return part === '' ? undefined : decodeURIComponent(part)
  } catch {
    throw invalid(
      'the user name or password in the URL of the Redis store has a % that encodes nothing: write it as %25',
    )
  }
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

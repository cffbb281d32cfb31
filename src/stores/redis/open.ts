import { invalid } from '../../contract/check.ts'
import { LeaseError } from '../../contract/errors.ts'
import type { Store } from '../../contract/store.ts'
import { warnOfClearPassword } from '../url/clear-password.ts'
import { load, WHERE } from '../url/load.ts'
import { minTtlIn } from '../url/min-ttl.ts'
import { decodePart, optionsOf, withoutBrackets } from '../url/options.ts'
import { NEVER } from '../wire/timeouts.ts'
import { openWire, type RedisClient } from './client.ts'
import { driverOf } from './driver.ts'
import { redis } from './index.ts'
import { CLAIMS, Keys } from './keys.ts'

/** The address of a server and the login. */
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

// The libraries in order of preference. Each entry only makes a client, because the store opens its own connections from
// it.
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
 * Opens the store at `redis[s]://[user:password@]host[:port][/database][?prefix=…&minTtl=…]`.
 * @throws LeaseError INVALID_ARGUMENT for an invalid URL, DRIVER_MISSING
 */
export async function openRedis(url: string): Promise<Store> {
  const { client, prefix } = clientAt(url)
  return redis(client, { prefix, minTtl: minTtlIn(new URL(url).searchParams) })
}

/** A client and the prefix for a URL. It does not connect yet. */
export function clientAt(url: string): { client: RedisClient; prefix: string | undefined } {
  const { target, prefix } = parse(url)
  return { client: clientOf(target, new URL(url).protocol), prefix }
}

/** Deletes everything that the store of a URL stores for these names. */
export async function forgetNames(url: string, names: readonly string[]): Promise<void> {
  const { target, prefix = 'holdfast' } = parse(url)
  await forgetAt(target, new Keys(prefix), names)
}

/** Deletes everything that one server stores for these names. */
export async function forgetAt(target: Target, keys: Keys, names: readonly string[]): Promise<void> {
  const wire = await openWire(driverOf(clientOf(target, 'redis:')), async () => {}, NEVER)
  try {
    const kinds = ['', ...CLAIMS]
    const all = names.flatMap(name => kinds.map(kind => keys.lease(name) + kind))
    await wire.call(['DEL', ...all])
  } finally {
    wire.close()
  }
}

/** Parses a URL. No message repeats the URL, because it may contain a password. */
function parse(url: string): { target: Target; prefix: string | undefined } {
  const shape = 'write redis://[user:password@]host[:port][/database][?prefix=…&minTtl=…], or rediss:// for TLS'
  const parsed = URL.canParse(url) ? new URL(url) : undefined
  if (!parsed)
    throw invalid(`the URL of the Redis store is invalid: ${shape}; percent-encode special characters in a password`)
  if (!parsed.hostname) throw invalid(`the URL of the Redis store has no host: ${shape}`)
  if (parsed.hash) throw invalid('the URL of the Redis store has a #: write it as %23')
  // Clients do not send a user name without a password.
  if (parsed.username && !parsed.password)
    throw invalid(
      'the URL of the Redis store has a user name and no password: write a password without a user as redis://:PASSWORD@host',
    )
  const [, database = '0'] = /^\/?(\d*)$/.exec(parsed.pathname) ?? []
  if (!/^\/?\d*$/.test(parsed.pathname))
    throw invalid('the database in the URL of the Redis store must be a number, as in redis://host/1')
  const options = optionsOf(parsed.search.slice(1), ['prefix', 'minTtl'], 'a Redis store')
  return {
    target: {
      host: withoutBrackets(parsed.hostname),
      port: Number(parsed.port || 6379),
      tls: parsed.protocol === 'rediss:',
      username: decode(parsed.username),
      password: decode(parsed.password),
      database: Number(database),
    },
    prefix: options.get('prefix') ?? undefined,
  }
}

/** Decodes a user name or password of a URL. */
export function decode(part: string): string | undefined {
  return part === '' ? undefined : decodePart(part, 'a Redis store')
}

/**
 * A client of ioredis, redis or iovalkey, whichever `load` finds first. `scheme` is for the message of `DRIVER_MISSING`.
 */
export function clientOf(target: Target, scheme: string): RedisClient {
  if (target.password !== undefined && !target.tls) warnOfClearPassword('Redis', target.host)
  for (const [name, make] of Object.entries(drivers)) {
    const module = load(name) as Module | undefined
    if (module) return make(module, target)
  }
  throw new LeaseError('DRIVER_MISSING', `a ${scheme} store needs a client of Redis: npm i ioredis ${WHERE}`)
}

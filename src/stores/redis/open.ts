import { invalid } from '../../contract/check.ts'
import type { Store } from '../../contract/store.ts'
import { optionsOf } from '../shared/options.ts'
import { shortestTtlIn } from '../shared/shortest-ttl.ts'
import { openLink, type RedisClient } from './client.ts'
import { driverOf } from './driver.ts'
import { clientOf, type Target } from './drivers.ts'
import { redis } from './index.ts'
import { Keys } from './keys.ts'
import { LINE } from './script.ts'

/**
 * The store that `redis[s]://[user:password@]host[:port][/database][?prefix=…&shortestTtl=…]` names.
 * @throws LeaseError INVALID_ARGUMENT for a URL that cannot be right, DRIVER_MISSING
 */
export async function openRedis(url: string): Promise<Store> {
  const { client, prefix } = clientAt(url)
  return redis(client, { prefix, shortestTtl: shortestTtlIn(new URL(url).searchParams) })
}

/** A client for what a URL names, and which prefix it says. Nothing is connected yet. */
export function clientAt(url: string): { client: RedisClient; prefix: string | undefined } {
  const { target, prefix } = parse(url)
  return { client: clientOf(target, new URL(url).protocol), prefix }
}

/** Removes what the store that a URL names keeps of names that nobody wants any more. */
export async function forgetNames(url: string, names: readonly string[]): Promise<void> {
  const { target, prefix = 'holdfast' } = parse(url)
  await forgetAt(target, new Keys(prefix), names)
}

/** The same at one server. */
export async function forgetAt(target: Target, keys: Keys, names: readonly string[]): Promise<void> {
  const link = await openLink(driverOf(clientOf(target, 'redis:')), async () => {}, new AbortController().signal)
  try {
    const kinds = ['', ...LINE]
    const all = names.flatMap(name => kinds.map(kind => keys.lease(name) + kind))
    await link.call(['DEL', ...all])
  } finally {
    link.close()
  }
}

/** No message repeats the URL: it may hold a password. */
function parse(url: string): { target: Target; prefix: string | undefined } {
  const shape = 'write redis://[user:password@]host[:port][/database][?prefix=…&shortestTtl=…], or rediss:// for TLS'
  const parsed = URL.canParse(url) ? new URL(url) : undefined
  if (!parsed)
    throw invalid(`the URL of the Redis store cannot be read: ${shape}; encode what is special in a password`)
  if (!parsed.hostname) throw invalid(`the URL of the Redis store names no host: ${shape}`)
  if (parsed.hash) throw invalid('the URL of the Redis store has a #: write it as %23')
  const [, database = '0'] = /^\/?(\d*)$/.exec(parsed.pathname) ?? []
  if (!/^\/?\d*$/.test(parsed.pathname))
    throw invalid('the database in the URL of a Redis store must be a number, as in redis://host/1')
  const options = optionsOf(parsed.search.slice(1), ['prefix', 'shortestTtl'], 'a Redis store')
  return {
    target: {
      host: parsed.hostname.replace(/^\[(.*)\]$/, '$1'),
      port: Number(parsed.port || 6379),
      tls: parsed.protocol === 'rediss:',
      username: decode(parsed.username),
      password: decode(parsed.password),
      database: Number(database),
    },
    prefix: options.get('prefix') ?? undefined,
  }
}

/** A user name or password as it stands in a URL. */
export function decode(part: string): string | undefined {
  try {
    return part === '' ? undefined : decodeURIComponent(part)
  } catch {
    throw invalid(
      'the user name or password in the URL of the Redis store has a % that encodes nothing: write it as %25',
    )
  }
}

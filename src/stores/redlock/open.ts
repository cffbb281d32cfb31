import { invalid } from '../../contract/check.ts'
import type { Store } from '../../contract/store.ts'
import type { RedisClient } from '../redis/client.ts'
import { Keys } from '../redis/keys.ts'
import { clientOf, decode, forgetAt, type Target } from '../redis/open.ts'
import { optionsOf, withoutBrackets } from '../url/options.ts'
import { type RedlockOptions, redlock } from './index.ts'

const SHAPE =
  'write redlock://[user:password@]host[:port],host[:port],…[/database][?option=…], or redlocks:// for TLS; ' +
  'percent-encode special characters in a password'

/** Parses the value of each option. */
const options: { readonly [Name in keyof RedlockOptions]-?: (text: string) => unknown } = {
  prefix: text => text,
  nodeTimeout: Number,
  maxTtl: Number,
  trustRestarted: text => (text === 'true' ? true : text === 'false' ? false : text),
  acquireShare: Number,
  drift: Number,
  minTtl: Number,
}

const known = [...Object.keys(options), 'username', 'password']

/**
 * Opens the store at `redlock[s]://[user:password@]host[:port],host[:port],…[/database][?option=…]`. The options are those
 * of `redlock`, and `username` and `password` for servers without their own.
 * @throws LeaseError INVALID_ARGUMENT for an invalid URL, DRIVER_MISSING
 */
export async function openRedlock(url: string): Promise<Store> {
  const { query } = parse(url)
  const chosen: Record<string, unknown> = {}
  for (const [name, read] of Object.entries(options)) {
    const text = query.get(name)
    if (text !== undefined) chosen[name] = read(text)
  }
  const clients = serversOf(url).map(({ client }) => client)
  return redlock(clients, chosen)
}

/** The servers of a URL, each with a client that does not connect yet, and the prefix of the keys and channels. */
export function serversOf(url: string): { target: Target; client: RedisClient; prefix: string }[] {
  const { scheme, targets, query } = parse(url)
  return targets.map(target => ({ target, client: clientOf(target, `${scheme}:`), prefix: prefixOf(query) }))
}

/** Deletes everything that the servers of a URL store for these names. */
export async function forgetNames(url: string, names: readonly string[]): Promise<void> {
  const { targets, query } = parse(url)
  const keys = new Keys(prefixOf(query))
  await Promise.all(targets.map(target => forgetAt(target, keys, names)))
}

function prefixOf(query: ReadonlyMap<string, string>): string {
  return `${query.get('prefix') ?? 'holdfast'}:redlock`
}

function parse(url: string): { scheme: string; targets: Target[]; query: ReadonlyMap<string, string> } {
  const [, scheme = '', hosts, database = '0', search = ''] =
    /^(redlocks?):\/\/([^/?#]*)(?:\/([^?#]*))?(?:\?([^#]*))?$/i.exec(url) ?? []
  if (!hosts) throw invalid(`the URL of the Redlock store is invalid, or has no host: ${SHAPE}`)
  if (!/^\d*$/.test(database))
    throw invalid(`the database in the URL of the Redlock store must be a number, as in redlock://a,b,c/1: ${SHAPE}`)
  const query = new Map(optionsOf(search, known, 'a Redlock store'))
  const tls = scheme.toLowerCase() === 'redlocks'
  const targets = hosts.split(',').map(host => targetOf(host, { tls, database: Number(database), query }))
  return { scheme, targets, query }
}

interface Common {
  readonly tls: boolean
  readonly database: number
  readonly query: ReadonlyMap<string, string>
}

function targetOf(host: string, { tls, database, query }: Common): Target {
  const text = `redis://${host}`
  const parsed = URL.canParse(text) ? new URL(text) : undefined
  if (!parsed?.hostname) throw invalid(`a host in the URL of the Redlock store is invalid: ${SHAPE}`)
  return {
    host: withoutBrackets(parsed.hostname),
    port: Number(parsed.port || 6379),
    tls,
    username: decode(parsed.username) ?? query.get('username'),
    password: decode(parsed.password) ?? query.get('password'),
    database,
  }
}

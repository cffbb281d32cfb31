import { invalid } from '../../contract/check.ts'
import type { Store } from '../../contract/store.ts'
import { minTtlIn } from '../url/min-ttl.ts'
import { checkHosts, decodePart, optionsOf } from '../url/options.ts'
import { pemFiles, readPem } from '../url/pem.ts'
import type { EtcdTls } from './endpoint.ts'
import { type EtcdOptions, etcd } from './index.ts'

const SHAPE = 'write etcd://[user:password@]host[:port][,host[:port]…][?prefix=…], or etcds:// for TLS'

const STORE = 'an etcd store'

const known: ReadonlySet<string> = new Set(['prefix', 'minTtl', ...pemFiles])

/**
 * Opens the store at `etcd[s]://[user:password@]host[:port][,host[:port]…][?prefix=…]`. With TLS the URL may have `ca`,
 * `cert` and `key`, the paths of PEM files.
 * @throws LeaseError INVALID_ARGUMENT for an invalid URL
 */
export async function openEtcd(url: string): Promise<Store> {
  return etcd(optionsAt(url))
}

/** Parses a URL. Throws like `openEtcd`. */
export function optionsAt(url: string): EtcdOptions {
  // This does not use the class URL, which supports only one host. No message repeats the URL, because it may contain a
  // password.
  const parts =
    /^(?<scheme>etcds?):\/\/(?:(?<access>[^/?#]*)@)?(?<hosts>[^/?#]*)\/?(?:\?(?<query>[^#]*))?(?<rest>.*)$/is.exec(url)
  const { scheme = '', access, hosts = '', query = '', rest = '' } = parts?.groups ?? {}
  if (!parts) throw invalid(`the URL of the etcd store is invalid: ${SHAPE}`)
  if (rest.startsWith('#')) throw invalid('the URL of the etcd store has a #: write it as %23')
  if (rest) throw invalid(`the URL of the etcd store has a path: ${SHAPE}`)
  if (!hosts) throw invalid(`the URL of the etcd store has no host: ${SHAPE}`)
  checkHosts(hosts, query, STORE)
  const options = optionsOf(query, known, STORE)
  const isSecure = scheme.toLowerCase() === 'etcds'
  const given = pemFiles.find(name => options.has(name))
  if (!isSecure && given) throw invalid(`${given} in the URL of an etcd store is for TLS: use etcds://`)
  const tls: EtcdTls | undefined = isSecure ? readPem(options, 'etcd') : undefined
  const prefix = options.get('prefix') ?? undefined
  const minTtl = minTtlIn(options)
  return { endpoints: hosts.split(','), tls, ...userOf(access), prefix, minTtl }
}

function userOf(access: string | undefined): { user?: string; password?: string } {
  if (access === undefined) return {}
  const colon = access.indexOf(':')
  if (colon < 1) throw invalid(`the URL of the etcd store needs both a user and a password: ${SHAPE}`)
  return { user: decodePart(access.slice(0, colon), STORE), password: decodePart(access.slice(colon + 1), STORE) }
}

import { invalid } from '../../contract/check.ts'
import type { Store } from '../../contract/store.ts'
import { minTtlIn } from '../url/min-ttl.ts'
import { checkHosts, decodePart, optionsOf } from '../url/options.ts'
import { pemFiles, readPem } from '../url/pem.ts'
import { type ZooKeeperOptions, zookeeper } from './index.ts'

const SHAPE =
  'write zookeeper://[user:password@]host[:port][,host[:port] …][/chroot][?prefix=…&sessionTimeout=…&tls=true[&ca=…&cert=…&key=…]]'

const STORE = 'a ZooKeeper store'

const known: ReadonlySet<string> = new Set(['prefix', 'sessionTimeout', 'tls', 'minTtl', ...pemFiles])

/**
 * Opens the store at `zookeeper://[user:password@]host[:port][,host[:port] …][/chroot][?prefix=…]`. With `tls=true` the
 * URL may have `ca`, `cert` and `key`, the paths of PEM files.
 * @throws LeaseError INVALID_ARGUMENT for an invalid URL
 */
export function openZooKeeper(url: string): Store {
  return zookeeper(optionsAt(url))
}

/**
 * Parses a URL. It does not use the class `URL`, which supports only one host. No message repeats the URL, because it may
 * contain a password.
 */
export function optionsAt(url: string): ZooKeeperOptions {
  if (url.includes('#')) throw invalid('the URL of the ZooKeeper store has a #: write it as %23')
  const [, login, servers, chroot = '', query = ''] =
    /^zookeeper:\/\/(?:([^@/?]*)@)?([^@/?]+)(\/[^?]*)?(?:\?(.*))?$/i.exec(url) ?? []
  if (servers === undefined)
    throw invalid(
      `the URL of the ZooKeeper store is invalid: ${SHAPE}; percent-encode special characters in a password`,
    )
  checkHosts(servers, chroot + query, STORE)
  const options = optionsOf(query, known, STORE)
  const [prefix, sessionTimeout, tls] = [...known].map(key => options.get(key) ?? undefined)
  if (tls !== undefined && tls !== 'true' && tls !== 'false')
    throw invalid('tls in the URL of the ZooKeeper store must be true or false')
  const file = pemFiles.find(name => options.has(name))
  if (file && tls !== 'true') throw invalid(`${file} in the URL of the ZooKeeper store is for TLS: add tls=true`)
  if (options.has('cert') !== options.has('key'))
    throw invalid('the URL of the ZooKeeper store needs both cert and key, or none')
  return {
    servers,
    chroot: decodePart(chroot, STORE),
    prefix,
    auth: login === undefined ? undefined : authOf(login),
    tls: tls === 'true' && readPem(options, 'ZooKeeper'),
    sessionTimeout: sessionTimeout === undefined ? undefined : Number(sessionTimeout),
    minTtl: minTtlIn(options),
  }
}

function authOf(login: string): { user: string; password: string } {
  const [, user = '', password] = /^([^:]*):(.*)$/s.exec(login) ?? []
  if (password === undefined)
    throw invalid('the URL of the ZooKeeper store has a user without a password: write user:password@')
  return { user: decodePart(user, STORE), password: decodePart(password, STORE) }
}

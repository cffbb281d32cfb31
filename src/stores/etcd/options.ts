import { createSecureContext, type SecureContextOptions } from 'node:tls'
import { checkKeys, checkText, invalid, show } from '../../contract/check.ts'
import { warnOfClearPassword } from '../url/clear-password.ts'
import type { MinTtl } from '../url/min-ttl.ts'
import { checkPrefix, withoutBrackets } from '../url/options.ts'
import type { Address, EtcdTls } from './endpoint.ts'
import { Gateway } from './gateway.ts'

export interface EtcdOptions extends MinTtl {
  /** All servers of the cluster, or some, as `host:port`; the default port is 2379. If one fails, the next is used. @default ['localhost:2379'] */
  readonly endpoints?: readonly string[] | undefined
  /** Options for TLS. `{}` trusts the authorities of Node. @default plain HTTP */
  readonly tls?: EtcdTls | undefined
  /** A user of etcd, if authentication is on. The store logs in, and again when the auth token has expired. */
  readonly user?: string | undefined
  /** The password of that user. Set both or neither. */
  readonly password?: string | undefined
  /** The prefix of all keys. Leases with the same prefix exclude each other. @default 'holdfast' */
  readonly prefix?: string | undefined
}

const optionKeys: ReadonlySet<string> = new Set(['endpoints', 'tls', 'user', 'password', 'prefix', 'minTtl'])
const tlsKeys: ReadonlySet<string> = new Set(['ca', 'cert', 'key', 'passphrase', 'servername'])
const PORT = 2_379

/** Makes a gateway to these servers. Its connections are not open yet. Throws like `etcd`. */
export function gatewayOf(options: EtcdOptions): Gateway {
  checkKeys(options, optionKeys, 'etcd')
  const { endpoints = [`localhost:${PORT}`], tls, user, password, prefix = 'holdfast' } = options
  if (!Array.isArray(endpoints) || endpoints.length === 0)
    throw invalid(`endpoints must be a list such as ['localhost:${PORT}'], not ${show(endpoints)}`)
  checkPrefix(prefix)
  if (tls !== undefined) checkTls(tls)
  if (user !== undefined) checkText(user, 'the user')
  if (password !== undefined && typeof password !== 'string')
    throw invalid(`the password must be a string, not ${show(typeof password)}`)
  if ((user === undefined) !== (password === undefined)) throw invalid('give both user and password, or none')
  const addresses = endpoints.map(addressOf)
  if (user !== undefined && !tls) for (const { host } of addresses) warnOfClearPassword('etcd', host)
  return new Gateway({ endpoints: addresses, tls, user, password })
}

function checkTls(tls: EtcdTls): void {
  checkKeys(tls, tlsKeys, 'tls')
  if ((tls.cert === undefined) !== (tls.key === undefined)) throw invalid('tls needs both cert and key, or none')
  if (tls.passphrase !== undefined && typeof tls.passphrase !== 'string')
    throw invalid(`the passphrase of tls must be a string, not ${show(typeof tls.passphrase)}`)
  try {
    createSecureContext(tls as SecureContextOptions)
  } catch (error) {
    throw invalid(`Node cannot use the option tls, so correct it: ${(error as Error).message}`)
  }
}

/** Parses `host`, `host:port` or `[::1]:port`. */
function addressOf(endpoint: unknown): Address {
  const text = typeof endpoint === 'string' ? endpoint : ''
  const { host, port = PORT } = /^(?<host>\[[\da-f:.]+\]|[^\s:/?#@[\]]+)(:(?<port>\d{1,5}))?$/i.exec(text)?.groups ?? {}
  if (host === undefined || Number(port) < 1 || Number(port) > 65_535)
    throw invalid(`an endpoint of etcd must be host:port, such as localhost:${PORT}, not ${show(endpoint)}`)
  return { host: withoutBrackets(host), port: Number(port) }
}

import type { ConnectionOptions } from 'node:tls'
import { checkDuration, checkKeys, invalid, show } from '../../contract/check.ts'
import type { Store } from '../../contract/store.ts'
import { systemClock } from '../../contract/time.ts'
import { warnOfClearPassword } from '../shared/clear-password.ts'
import { type ShortestTtl, withShortestTtl } from '../shared/shortest-ttl.ts'
import type { Server } from './connection.ts'
import { pathsOf } from './paths.ts'
import type { Ensemble } from './session.ts'
import { ZooKeeperStore } from './store.ts'

export interface ZooKeeperOptions extends ShortestTtl {
  /** The servers as `host:port`, in a list or separated by commas. The default port is 2181. */
  readonly servers: string | readonly string[]
  /** The path above all others. It is created if it is missing. @default '' */
  readonly chroot?: string | undefined
  /**
   * The node under `chroot` that contains all others. Leases with the same chroot and prefix exclude each other.
   * @default 'holdfast'
   */
  readonly prefix?: string | undefined
  /** Digest authentication: only this user can read or change the nodes. Nodes that others may change are refused. */
  readonly auth?: { readonly user: string; readonly password: string } | undefined
  /** Connect with TLS: `true`, or the options of Node's `tls.connect`, such as `ca`, `cert` and `key`. @default false */
  readonly tls?: boolean | ConnectionOptions | undefined
  /**
   * The shortest session, in milliseconds. Leases with a shorter ttl then share one, and the lease of a holder that died
   * lasts as long. @default what the ttl needs
   */
  readonly sessionTimeout?: number | undefined
}

const optionKeys: ReadonlySet<string> = new Set([
  'servers',
  'chroot',
  'prefix',
  'auth',
  'tls',
  'sessionTimeout',
  'shortestTtl',
])
const authKeys: ReadonlySet<string> = new Set(['user', 'password'])

const WORLD = { permissions: 31, scheme: 'world', id: 'anyone' }
/** The user that is authenticated on the connection. */
const OWN = { permissions: 31, scheme: 'auth', id: '' }

/**
 * Leases in ZooKeeper 3.6 or later: a single server or an ensemble. It needs no client. The first requests open the
 * store's own connections: one for each length of ttl in use, and one for inspection. They close with the store.
 * @throws LeaseError INVALID_ARGUMENT for invalid options. The first request reports whether a server answers.
 */
export function zookeeper(options: ZooKeeperOptions): Store {
  checkKeys(options, optionKeys, 'zookeeper')
  const { auth, tls = false, sessionTimeout = 0, shortestTtl } = options
  if (auth !== undefined) checkAuth(auth)
  if (typeof tls !== 'boolean' && (typeof tls !== 'object' || tls === null))
    throw invalid(`tls must be true, false or the options of tls.connect, not ${show(tls)}`)
  if (sessionTimeout !== 0) checkDuration(sessionTimeout, 'sessionTimeout')
  const ensemble = ensembleOf(options)
  if (auth && !tls) for (const { host } of ensemble.servers) warnOfClearPassword('ZooKeeper', host)
  const acl = auth ? OWN : WORLD
  const store = new ZooKeeperStore({ ensemble, paths: pathsOf(options), acl, clock: systemClock() }, sessionTimeout)
  return withShortestTtl(store, shortestTtl)
}

/** Where and how the servers are reached. */
export function ensembleOf({ servers, auth, tls = false }: ZooKeeperOptions): Ensemble {
  return { servers: serversOf(servers), auth, tls: tls === true ? {} : tls || undefined }
}

function checkAuth(auth: unknown): void {
  checkKeys(auth, authKeys, 'auth')
  const { user, password } = auth as Record<string, unknown>
  if (typeof user !== 'string' || user === '' || user.includes(':'))
    throw invalid('auth needs a user: a string without a colon that is not empty')
  if (typeof password !== 'string') throw invalid('auth needs a password: a string')
}

function serversOf(servers: unknown): Server[] {
  const texts = typeof servers === 'string' ? servers.split(',') : servers
  if (!Array.isArray(texts) || texts.length === 0)
    throw invalid(`zookeeper needs servers, such as 'zk1:2181,zk2:2181,zk3:2181', not ${show(servers)}`)
  return texts.map(text => {
    const [, bracketed, plain, port = '2181'] =
      /^(?:\[([^\]]+)\]|([^:,/\s@]+))(?::(\d{1,5}))?$/.exec(String(text).trim()) ?? []
    const host = bracketed ?? plain
    if (host === undefined || Number(port) < 1 || Number(port) > 65_535)
      throw invalid(`a server must be host:port, such as zk1:2181 or [::1]:2181, not ${show(text)}`)
    return { host, port: Number(port) }
  })
}

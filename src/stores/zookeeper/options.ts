import type { ConnectionOptions } from 'node:tls'
import { checkDuration, checkKeys, invalid, show } from '../../contract/check.ts'
import type { MinTtl } from '../url/min-ttl.ts'
import type { Server } from './connection.ts'
import type { Ensemble } from './session.ts'

export interface ZooKeeperOptions extends MinTtl {
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
   * The shortest session, in milliseconds. Leases with a shorter ttl then share one session, and the lease of a holder that
   * died lasts that long. @default what the ttl needs
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
  'minTtl',
])
const authKeys: ReadonlySet<string> = new Set(['user', 'password'])

/** Throws `INVALID_ARGUMENT` for options that are invalid with any server. */
export function checkOptions(options: ZooKeeperOptions): void {
  checkKeys(options, optionKeys, 'zookeeper')
  const { auth, tls = false, sessionTimeout = 0 } = options
  if (auth !== undefined) checkAuth(auth)
  if (typeof tls !== 'boolean' && (typeof tls !== 'object' || tls === null))
    throw invalid(`tls must be true, false or the options of tls.connect, not ${show(tls)}`)
  if (sessionTimeout !== 0) checkDuration(sessionTimeout, 'sessionTimeout')
}

/** The servers, and the options for connections to them. */
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

import type { Store } from '../../contract/store.ts'
import { systemClock } from '../../contract/time.ts'
import { warnOfClearPassword } from '../url/clear-password.ts'
import { withMinTtl } from '../url/min-ttl.ts'
import { checkOptions, ensembleOf, type ZooKeeperOptions } from './options.ts'
import { pathsOf } from './paths.ts'
import { ZooKeeperStore } from './store.ts'

export type { ZooKeeperOptions } from './options.ts'

const WORLD = { permissions: 31, scheme: 'world', id: 'anyone' }
/** An access control entry that gives all permissions to the user who is authenticated on the connection. */
const OWN = { permissions: 31, scheme: 'auth', id: '' }

/**
 * Leases in ZooKeeper 3.6 or later: a single server or an ensemble. It needs no client. The first requests open the
 * store's own connections: one for each length of ttl in use, and one for inspection. They close with the store.
 * @throws LeaseError INVALID_ARGUMENT for invalid options. The first request reports whether a server answers.
 */
export function zookeeper(options: ZooKeeperOptions): Store {
  checkOptions(options)
  const { auth, tls, sessionTimeout = 0, minTtl } = options
  const ensemble = ensembleOf(options)
  if (auth && !tls) for (const { host } of ensemble.servers) warnOfClearPassword('ZooKeeper', host)
  const acl = auth ? OWN : WORLD
  const store = new ZooKeeperStore({ ensemble, paths: pathsOf(options), acl, clock: systemClock() }, sessionTimeout)
  return withMinTtl(store, minTtl)
}

import type { Store } from '../../contract/store.ts'
import { systemClock } from '../../contract/time.ts'
import { withMinTtl } from '../url/min-ttl.ts'
import { type EtcdOptions, gatewayOf } from './options.ts'
import { EtcdStore } from './store.ts'

export type { EtcdTls } from './endpoint.ts'
export type { EtcdOptions } from './options.ts'

/**
 * Leases in etcd 3.4 or later, over its JSON gateway. It needs no client. The first request opens the connections. They do
 * not keep the process alive, and close with the store.
 * @throws LeaseError INVALID_ARGUMENT for invalid options. The first request reports whether a server answers.
 */
export function etcd(options: EtcdOptions = {}): Store {
  const { prefix = 'holdfast', minTtl } = options
  return withMinTtl(new EtcdStore(gatewayOf(options), prefix, systemClock()), minTtl)
}

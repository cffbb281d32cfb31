import { checkKeys } from '../../contract/check.ts'
import type { Store } from '../../contract/store.ts'
import { cas } from '../cas/index.ts'
import { bucketOf, checkKvm, type NatsKvm, type NatsOptions } from './client.ts'
import { guarantees } from './guarantees.ts'
import { registerOf } from './register.ts'

export type { Kv, KvEntry, NatsConsumer, NatsKvm, NatsOptions } from './client.ts'
export { type Creation, migrate } from './migrate.ts'

const optionKeys: ReadonlySet<string> = new Set(['bucket', 'minTtl'])

/**
 * Leases as records of a key-value bucket of NATS. `kvm` is yours, such as `new Kvm(connection)` of `@nats-io/kv` 3. It is
 * neither configured nor closed. `migrate` creates the bucket. Throws `INVALID_ARGUMENT` for any other client.
 */
export function nats(kvm: NatsKvm, options: NatsOptions = {}): Store {
  checkKeys(options, optionKeys, 'nats')
  checkKvm(kvm, 'nats(kvm)')
  return storeOf(async () => kvm, options)
}

/** The store over what `connect` resolves to at the first request. `close` closes it. */
export function storeOf(connect: () => Promise<NatsKvm>, options: NatsOptions, close?: () => Promise<void>): Store {
  const { minTtl } = options
  return cas(registerOf(connect, bucketOf(options), close), { kind: 'nats', guarantees, minTtl })
}

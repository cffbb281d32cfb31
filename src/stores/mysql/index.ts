import { checkBoolean, checkKeys } from '../../contract/check.ts'
import type { Store } from '../../contract/store.ts'
import { type MinTtl, withMinTtl } from '../url/min-ttl.ts'
import { driverOf, type MysqlClient } from './connection.ts'
import { type Tables, tableOf } from './schema.ts'
import { MysqlStore } from './store.ts'

export type { MysqlClient } from './connection.ts'
export { migrate, migration, type Tables } from './schema.ts'

export interface MysqlOptions extends Tables, MinTtl {
  /** Create the tables at the first use if they are missing? @default false */
  readonly create?: boolean | undefined
}

const optionKeys: ReadonlySet<string> = new Set(['table', 'create', 'minTtl'])

/**
 * Leases as rows of MariaDB 10.6 or MySQL 8.0, or later. `client` is one of yours: a pool or a connection of mysql2, or of
 * mysql2/promise. It is neither configured nor closed. With the first request the store opens its own connection with the
 * same settings, and `close()` closes that. Throws `INVALID_ARGUMENT` for any other client.
 */
export function mysql(client: MysqlClient, options: MysqlOptions = {}): Store {
  checkKeys(options, optionKeys, 'mysql')
  const { create = false, minTtl } = options
  checkBoolean(create, 'create')
  const store = new MysqlStore(driverOf(client, 'mysql(client)'), tableOf(options), create)
  return withMinTtl(store, minTtl)
}

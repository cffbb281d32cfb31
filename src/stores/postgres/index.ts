import { checkBoolean, checkDuration, checkKeys } from '../../contract/check.ts'
import type { Store } from '../../contract/store.ts'
import { DEFAULT_TTL } from '../../contract/time.ts'
import { type MinTtl, withMinTtl } from '../url/min-ttl.ts'
import { AdvisoryStore } from './advisory/store.ts'
import type { PostgresClient } from './client.ts'
import { driverOf } from './driver.ts'
import { namesOf, type Tables } from './names.ts'
import { PostgresStore } from './store.ts'

export type { PgClient, PgPool, PostgresClient, PostgresJs } from './client.ts'
export { migrate, migration } from './migrate.ts'
export type { Tables } from './names.ts'

export interface PostgresOptions extends Tables, MinTtl {
  /** Create the tables and functions at the first use if they are missing? @default false */
  readonly create?: boolean | undefined
  /**
   * A client that connects to the server directly, without a pooler. A connection with its settings receives notifications
   * of releases. `false`: there is none, and waiters poll. @default the client itself
   */
  readonly direct?: PostgresClient | false | undefined
}

export interface AdvisoryOptions extends Tables, MinTtl {
  /** Create the tables and functions at the first use if they are missing? @default false */
  readonly create?: boolean | undefined
  /**
   * The time without requests after which the server ends the connection, and with it all leases, in milliseconds. It is
   * also the longest ttl. It needs PostgreSQL 14. @default 10,000
   */
  readonly ttl?: number | undefined
}

const optionKeys: ReadonlySet<string> = new Set(['schema', 'table', 'create', 'direct', 'minTtl'])
const advisoryKeys: ReadonlySet<string> = new Set(['schema', 'table', 'create', 'ttl', 'minTtl'])

/**
 * Leases as rows of a table in PostgreSQL 12 or later, also through pgbouncer in any mode. `client` is one of yours: a
 * `Pool` or `Client` of pg >= 8.11, or postgres.js >= 3.4. It is neither configured nor closed. The store opens its own
 * connection with the same settings at the first request, and a second one for the first waiter, and closes both. Throws
 * `INVALID_ARGUMENT` for any other client.
 */
export function postgres(client: PostgresClient, options: PostgresOptions = {}): Store {
  checkKeys(options, optionKeys, 'postgres')
  const { create = false, direct = client, minTtl } = options
  checkBoolean(create, 'create')
  const driver = driverOf(client, 'postgres(client)')
  const listener = direct === false ? undefined : direct === client ? driver : driverOf(direct, 'the option direct')
  const store = new PostgresStore(driver, { names: namesOf(options), create, direct: listener })
  return withMinTtl(store, minTtl)
}

/**
 * Leases as session advisory locks of PostgreSQL. All leases of the store share one connection, which must not go through
 * a pooler, and end with it. A lease costs one write, for its token, and cannot be broken. Waiters poll, in no order. The
 * client is neither configured nor closed. Throws `INVALID_ARGUMENT` for any other client.
 */
export function advisory(client: PostgresClient, options: AdvisoryOptions = {}): Store {
  checkKeys(options, advisoryKeys, 'advisory')
  const { create = false, ttl = DEFAULT_TTL, minTtl } = options
  checkBoolean(create, 'create')
  checkDuration(ttl, 'ttl')
  const driver = driverOf(client, 'advisory(client)')
  return withMinTtl(new AdvisoryStore(driver, { names: namesOf(options), create, ttl }), minTtl)
}

import { checkDuration, checkKeys, invalid, show } from '../../contract/check.ts'
import type { Store } from '../../contract/store.ts'
import { type ShortestTtl, withShortestTtl } from '../shared/shortest-ttl.ts'
import { AdvisoryStore } from './advisory/store.ts'
import type { PostgresClient } from './client.ts'
import { driverOf } from './driver.ts'
import { namesOf, type Place } from './names.ts'
import { PostgresStore } from './store.ts'

export type { PgClient, PgPool, PostgresClient, PostgresJs } from './client.ts'
export { migrate, migration } from './migrate.ts'
export type { Place } from './names.ts'

export interface PostgresOptions extends Place, ShortestTtl {
  /** May the store make its tables and functions, if they are missing when it is first used? @default false */
  readonly create?: boolean | undefined
  /**
   * A client that reaches the server itself, past a pooler: a connection like its own hears who wakes the waiters.
   * `false`: none, so that waiters ask again and again. @default the client itself
   */
  readonly direct?: PostgresClient | false | undefined
}

export interface AdvisoryOptions extends Place, ShortestTtl {
  /** May the store make its tables and functions, if they are missing when it is first used? @default false */
  readonly create?: boolean | undefined
  /**
   * Milliseconds of silence after which the server ends the one connection, and with it all leases: the longest ttl
   * that can be asked for. Needs PostgreSQL 14. @default 10,000
   */
  readonly ttl?: number | undefined
}

const optionKeys: ReadonlySet<string> = new Set(['schema', 'table', 'create', 'direct', 'shortestTtl'])
const advisoryKeys: ReadonlySet<string> = new Set(['schema', 'table', 'create', 'ttl', 'shortestTtl'])

/**
 * Leases as rows of a table in PostgreSQL 12 or later, over a client that you have: a `Pool` or `Client` of pg >= 8.11,
 * or postgres.js >= 3.4, also through pgbouncer in any mode. The client itself is neither configured nor closed: the
 * store opens a connection of its own like it when the first request is made, and a second one when somebody first
 * waits, and closes them. Throws `INVALID_ARGUMENT` for what is no such client.
 */
export function postgres(client: PostgresClient, options: PostgresOptions = {}): Store {
  checkKeys(options, optionKeys, 'postgres')
  const { create = false, direct = client, shortestTtl } = options
  if (typeof create !== 'boolean') throw invalid(`create must be true or false, not ${show(create)}`)
  const driver = driverOf(client, 'postgres(client)')
  const ears = direct === false ? undefined : direct === client ? driver : driverOf(direct, 'the option direct')
  return withShortestTtl(new PostgresStore(driver, { names: namesOf(options), create, ears }), shortestTtl)
}

/**
 * Leases as session advisory locks of PostgreSQL, many over one connection of their own, which must not go through a
 * pooler. They end with that connection, cost no write but that of the token, and cannot be broken; waiters ask again
 * and again, in no order. The client is neither configured nor closed. Throws `INVALID_ARGUMENT` for what is none.
 */
export function advisory(client: PostgresClient, options: AdvisoryOptions = {}): Store {
  checkKeys(options, advisoryKeys, 'advisory')
  const { create = false, ttl = 10_000, shortestTtl } = options
  if (typeof create !== 'boolean') throw invalid(`create must be true or false, not ${show(create)}`)
  checkDuration(ttl, 'ttl')
  const driver = driverOf(client, 'advisory(client)')
  return withShortestTtl(new AdvisoryStore(driver, { names: namesOf(options), create, ttl }), shortestTtl)
}

import { invalid } from '../../contract/check.ts'

/** An option of a caller's client that its public surface does not show. */
interface PrivateField {
  readonly client: string
  readonly field: string
  readonly holds: string
  /** In which it was read. */
  readonly versions: string
}

type Kind = 'cluster' | 'sentinel' | 'pool' | 'selected' | 'pgClient' | 'mysqlPool'

/** All options that are read from private fields of clients. The same table is in docs/reference/clients.md. */
export const PRIVATE_FIELDS: Readonly<Record<Kind, PrivateField>> = {
  cluster: {
    client: 'a cluster of redis (node-redis)',
    field: '_options',
    holds: 'key prefix, options of nodes',
    versions: 'redis 5.0 to 6.3',
  },
  sentinel: {
    client: 'a sentinel client of redis (node-redis)',
    field: '_keyPrefix',
    holds: 'key prefix',
    versions: 'redis 6.1 to 6.3',
  },
  pool: {
    client: 'a pool of redis (node-redis)',
    field: '_keyPrefix',
    holds: 'key prefix',
    versions: 'redis 6.1 to 6.3',
  },
  selected: {
    client: 'a client of ioredis or iovalkey',
    field: 'condition',
    holds: 'selected database',
    versions: 'ioredis 5.11 and 6.0, iovalkey 0.4',
  },
  pgClient: {
    client: 'a Client of pg',
    field: 'connectionParameters',
    holds: 'all options',
    versions: 'pg 8.23',
  },
  mysqlPool: {
    client: 'a pool of mysql2',
    field: 'config.connectionConfig',
    holds: 'all options',
    versions: 'mysql2 3.24',
  },
}

/**
 * The value of such a field. Throws `INVALID_ARGUMENT` if the client does not have it: the option would be ignored, and
 * processes with the same options would not exclude each other.
 */
export function readPrivate(client: object, kind: Kind): unknown {
  const { client: what, field, holds, versions } = PRIVATE_FIELDS[kind]
  if (field in client) return (client as Record<string, unknown>)[field]
  throw invalid(
    `this version of ${what} does not show its ${holds}: its field ${field} is missing; use ${versions}, or another client`,
  )
}

import { invalid } from '../../contract/check.ts'
import type { LeaseError } from '../../contract/errors.ts'

/**
 * An option of a caller's client that its public surface does not show. This file has all that are read, and the same table
 * is in docs/reference/clients.md.
 */
export interface PrivateField {
  readonly client: string
  readonly field: string
  readonly holds: string
  /** In which it was read. */
  readonly versions: string
}

export const CLIENT: PrivateField = {
  client: 'a client of redis (node-redis)',
  field: 'options',
  holds: 'all options',
  versions: 'redis 4.7 to 6.3',
}

export const CLUSTER: PrivateField = {
  client: 'a cluster of redis (node-redis)',
  field: '_options',
  holds: 'key prefix, options of nodes',
  versions: 'redis 5.0 to 6.3',
}

export const SENTINEL: PrivateField = {
  client: 'a sentinel client of redis (node-redis)',
  field: '_keyPrefix',
  holds: 'key prefix',
  versions: 'redis 6.1 to 6.3',
}

/** JavaScript hides it, so it is read from what `duplicate` passes on. */
export const SENTINEL_OPTIONS: PrivateField = {
  ...SENTINEL,
  field: '#options',
  holds: 'addresses, options of nodes and sentinels',
}

export const POOL: PrivateField = { ...SENTINEL, client: 'a pool of redis (node-redis)' }

export const SELECTED: PrivateField = {
  client: 'a client of ioredis or iovalkey',
  field: 'condition',
  holds: 'selected database',
  versions: 'ioredis 5.11 and 6.0, iovalkey 0.4',
}

/** Without it, an object is no client of pg. */
export const PG_CLIENT: PrivateField = {
  client: 'a Client of pg',
  field: 'connectionParameters',
  holds: 'all options',
  versions: 'pg 8.23',
}

/** Without it, an object is no pool of mysql2. */
export const MYSQL_POOL: PrivateField = {
  client: 'a pool of mysql2',
  field: 'config.connectionConfig',
  holds: 'all options',
  versions: 'mysql2 3.24',
}

/**
 * The value of such a field. Throws `INVALID_ARGUMENT` if the client does not have it: the option would be ignored, and
 * processes with the same options would not exclude each other.
 */
export function readPrivate(client: object, field: PrivateField): unknown {
  if (field.field in client) return (client as Record<string, unknown>)[field.field]
  throw hidden(field)
}

/** The error for a client that does not have such a field. */
export function hidden({ client: what, field, holds, versions }: PrivateField): LeaseError {
  return invalid(
    `this version of ${what} does not show its ${holds}: its field ${field} is missing; use ${versions}, or another client`,
  )
}

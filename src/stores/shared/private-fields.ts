import { invalid } from '../../contract/check.ts'

/** An option of a caller's client that its public surface does not show. */
interface PrivateField {
  readonly client: string
  readonly field: string
  readonly holds: string
  /** In which it was read. */
  readonly versions: string
}

/** All options that are read from private fields of clients. The same table is in docs/reference/clients.md. */
export const PRIVATE_FIELDS: Readonly<Record<'cluster' | 'sentinel' | 'pool', PrivateField>> = {
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
}

/**
 * The value of such a field. Throws `INVALID_ARGUMENT` if the client does not have it: the option would be ignored, and
 * processes with the same options would not exclude each other.
 */
export function readPrivate(client: object, kind: keyof typeof PRIVATE_FIELDS): unknown {
  const { client: what, field, holds, versions } = PRIVATE_FIELDS[kind]
  if (field in client) return (client as Record<string, unknown>)[field]
  throw invalid(
    `this version of ${what} does not show its ${holds}: its field ${field} is missing; use ${versions}, or another client`,
  )
}

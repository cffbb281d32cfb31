import { invalid } from '../../contract/check.ts'
import { PostgresConnection, type PostgresDriver } from './connection.ts'
import { pg } from './pg.ts'
import { postgresJs } from './postgres-js.ts'

/** Throws `INVALID_ARGUMENT` unless it is a client of PostgreSQL. */
export function driverOf(client: unknown, what: string): PostgresDriver {
  const driver =
    (typeof client === 'object' || typeof client === 'function') && client && (pg(client) ?? postgresJs(client))
  if (driver) return { open: async signal => new PostgresConnection(await driver.open(signal)) }
  const given =
    client === null
      ? 'null'
      : typeof client === 'object'
        ? `an object of ${client.constructor?.name ?? 'no class'}`
        : `a ${typeof client}`
  throw invalid(`${what} was given ${given}: pass a Pool or Client of pg, or the result of postgres() of postgres.js`)
}

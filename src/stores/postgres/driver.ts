import { invalid } from '../../contract/check.ts'
import { BoundLink } from './bound.ts'
import type { Driver } from './client.ts'
import { pg } from './pg.ts'
import { postgresJs } from './postgres-js.ts'

/** Throws `INVALID_ARGUMENT` for what is no client of PostgreSQL. */
export function driverOf(client: unknown, what: string): Driver {
  const opener =
    (typeof client === 'object' || typeof client === 'function') && client && (pg(client) ?? postgresJs(client))
  if (opener) return { open: async signal => new BoundLink(await opener.open(signal)) }
  const given =
    client === null
      ? 'null'
      : typeof client === 'object'
        ? `an object of ${client.constructor?.name ?? 'no class'}`
        : `a ${typeof client}`
  throw invalid(`${what} was given ${given}: pass a Pool or Client of pg, or what postgres() of postgres.js answered`)
}

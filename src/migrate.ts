import { engineOf } from './engines.ts'

/**
 * Creates what the store that a URL names must have before it is used, such as the tables of PostgreSQL, and brings it up
 * to date. It may run again. Resolves to the name of the table of leases; to `undefined` for an engine that creates by
 * itself what it needs. Rejects as `connect` does, and `STORE_UNAVAILABLE`.
 */
export async function migrate(url: string): Promise<string | undefined> {
  return engineOf(url).migrate?.(url)
}

/** The SQL of `migrate(url)`, for migrations of your own. Connects to nothing. `undefined` where none is needed. */
export async function migration(url: string): Promise<string | undefined> {
  return engineOf(url).migration?.(url)
}

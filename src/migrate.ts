import { engineOf } from './engines.ts'

/**
 * Creates or upgrades what the store of a URL needs before its first use, such as the tables of PostgreSQL. It may run
 * again. Resolves to the name of the table of leases. `undefined`: the engine needs no migration. Rejects as `connect` does,
 * and `STORE_UNAVAILABLE`.
 */
export async function migrate(url: string): Promise<string | undefined> {
  return engineOf(url).migrate?.(url)
}

/** The SQL of `migrate(url)`, for your own migrations. It does not connect. `undefined`: the engine needs none. */
export async function migration(url: string): Promise<string | undefined> {
  return engineOf(url).migration?.(url)
}

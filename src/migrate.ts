import { checkBoolean, checkKeys, invalid } from './contract/check.ts'
import { type Engine, engineOf } from './engines.ts'

/** The options of `migrate`. */
export interface MigrateOptions {
  /** Also create the default fence in the same database, for PostgreSQL and MySQL. @default false */
  readonly fence?: boolean | undefined
}

const known = new Set(['fence'])

/**
 * Creates or upgrades what the store of a URL needs before its first use, such as the tables of PostgreSQL. It may run
 * again. Resolves to the names of the table of leases and of the table of marks, or to an empty list if the engine needs
 * no migration. Rejects as `connect` does, and `STORE_UNAVAILABLE`.
 */
export async function migrate(url: string, options: MigrateOptions = {}): Promise<readonly string[]> {
  const engine = engineFor(url, options)
  return [
    ...(engine.migrate ? [await engine.migrate(url)] : []),
    ...(options.fence && engine.installFence ? [await engine.installFence(url)] : []),
  ]
}

/** The SQL of `migrate(url)`. It does not connect. `undefined`: the engine needs none. */
export async function migration(url: string, options: MigrateOptions = {}): Promise<string | undefined> {
  const engine = engineFor(url, options)
  const sql = [await engine.migration?.(url), options.fence ? await engine.leaseFenceSql?.(url) : undefined].filter(
    part => part !== undefined,
  )
  return sql.length > 0 ? sql.join('\n') : undefined
}

function engineFor(url: string, options: MigrateOptions): Engine {
  checkKeys(options, known, 'migrate')
  const { fence = false } = options
  checkBoolean(fence, 'fence')
  const engine = engineOf(url)
  if (!fence || engine.installFence) return engine
  const cure = engine.fenceSql
    ? `call fence.install() with your client, or run what holdfast fence sql --url ${engine.example} prints`
    : 'leave the option out'
  throw invalid(`a store over ${engine.name} does not share its database with fenced tables: ${cure}`)
}

import { invalid } from './contract/check.ts'
import { ENGINES, engineAt, schemeOf } from './engines.ts'
import type { FenceSqlOptions, OpenMarks } from './fencing/open.ts'

const SHAPES =
  "postgres://host/database, redis://host:6379, sqlite:/path/of/the/application's.db, or file:///folder/of/the/files"

/**
 * Opens the high-water marks that fences keep at a URL, to list, advance or prune them:
 *
 *     postgres[ql]://…[?schema=…&table=…]   redis[s]://…[?prefix=…]   sqlite:PATH   file:///FOLDER
 *
 * Rejects `INVALID_ARGUMENT` for a URL where no marks are kept, `DRIVER_MISSING` with the line that installs it. Whether
 * the server answers shows at the first call. Dispose of it: `await using marks = await openMarks(url)`.
 */
export async function openMarks(url: string): Promise<OpenMarks> {
  const engine = engineAt(url)
  if (engine?.openMarks) return engine.openMarks(url)
  const scheme = schemeOf(url)
  if (scheme === 'file:') return (await import('./fencing/files/open.ts')).openMarks(url)
  if (scheme !== undefined && ['http:', 'https:', 's3:'].includes(scheme))
    throw invalid(
      'marks of objects are in the objects, for which a URL has no client: use fence.marks of holdfast/fencing/objects',
    )
  throw invalid(`no marks are kept at a URL of ${scheme ?? 'this'}: expected ${SHAPES}`)
}

/**
 * The SQL that creates the marks at a URL of PostgreSQL or SQLite, or with `row` the trigger of a table. Connects to
 * nothing. Rejects `INVALID_ARGUMENT`.
 */
export async function fenceSql(url: string, options: FenceSqlOptions = {}): Promise<string> {
  const engine = engineAt(url)
  if (engine?.fenceSql) return engine.fenceSql(url, options)
  const known = ENGINES.flatMap(({ schemes, fenceSql }) => (fenceSql ? schemes : [])).join(' ')
  throw invalid(`marks need SQL only at URLs of ${known}: elsewhere nothing has to be created`)
}

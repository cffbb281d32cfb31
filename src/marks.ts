import { invalid } from './contract/check.ts'
import { ENGINES, engineAt, schemeOf } from './engines.ts'
import type { FenceSqlOptions, OpenMarks } from './fencing/open.ts'

const SHAPES =
  "postgres://host/database, mysql://host/database, redis://host:6379, sqlite:/path/of/the/application's.db, " +
  'or file:///folder/of/the/files'

/**
 * Opens the high-water marks that fences store at a URL, to list, advance or prune them:
 *
 *     postgres[ql]://…[?table=[SCHEMA.]TABLE]   mysql://… or mariadb://…[?table=…]   redis[s]://…[?prefix=…]
 *     sqlite:PATH   file:///FOLDER
 *
 * Rejects `INVALID_ARGUMENT` for any other URL, and `DRIVER_MISSING` with the command that installs the driver. The first
 * call connects to the server. Dispose of the result: `await using marks = await openMarks(url)`.
 */
export async function openMarks(url: string): Promise<OpenMarks> {
  const engine = engineAt(url)
  if (engine?.openMarks) return engine.openMarks(url)
  const scheme = schemeOf(url)
  if (scheme === 'file:') return (await import('./fencing/files/open.ts')).openMarks(url)
  if (scheme !== undefined && ['http:', 'https:', 's3:'].includes(scheme))
    throw invalid(
      'the marks of objects are in the objects, which need a client: use fence.marks of holdfast/fencing/objects',
    )
  throw invalid(
    `${scheme === undefined ? 'this is no URL with' : `a URL of ${scheme} has no`} marks: expected ${SHAPES}`,
  )
}

/**
 * The SQL that creates the table of marks for a URL of PostgreSQL, MySQL or SQLite, or with `row` the trigger of a table
 * of PostgreSQL. It does not connect. Rejects `INVALID_ARGUMENT`.
 */
export async function fenceSql(url: string, options: FenceSqlOptions = {}): Promise<string> {
  const engine = engineAt(url)
  if (engine?.fenceSql) return engine.fenceSql(url, options)
  const known = ENGINES.flatMap(({ schemes, fenceSql }) => (fenceSql ? schemes : [])).join(' ')
  throw invalid(`only marks at URLs of ${known} need SQL: elsewhere nothing has to be created`)
}

import { clientAt, tablesOf } from '../../stores/postgres/open.ts'
import { type FenceSqlOptions, type OpenMarks, openMarksOf } from '../open.ts'
import { fenceSql as marksSql, postgresFence, rowFenceSql } from './index.ts'

/** The marks in the table that a URL names. */
export function openMarks(url: string): OpenMarks {
  const { client, tables } = clientAt(url)
  // Not awaited: with a server that does not respond, `end` would never resolve.
  return openMarksOf(postgresFence(client, tables).marks, () => void (client as { end?(): unknown }).end?.())
}

/** The SQL for that table, or with `row` for the trigger of another. */
export function fenceSql(url: string, { row, leases }: FenceSqlOptions): string {
  const tables = tablesOf(url)
  return row ? rowFenceSql(row, tables) : marksSql({ ...tables, leases })
}

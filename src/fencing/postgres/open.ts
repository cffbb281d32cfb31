import { clientAt, tablesOf } from '../../stores/postgres/open.ts'
import { end, type FenceSqlOptions, installAt, type OpenMarks, openMarksOf } from '../open.ts'
import { fenceSql as marksSql, postgresFence, rowFenceSql } from './index.ts'
import { fenceNames } from './names.ts'

/** The marks in the table that a URL names. */
export function openMarks(url: string): OpenMarks {
  const { client, tables } = clientAt(url)
  return openMarksOf(postgresFence(client, tables).marks, () => end(client))
}

/** Creates the marks of the default fence in the database of a URL, for the leases there. Resolves to their table. */
export async function installFence(url: string): Promise<string> {
  const { client, tables } = clientAt(url)
  await installAt(postgresFence(client, { leases: tables }), client)
  return fenceNames({}).marks
}

/** The SQL that `installFence` runs. */
export function leaseFenceSql(url: string): string {
  return marksSql({ leases: tablesOf(url) })
}

/** The SQL for the table that a URL names, or with `row` for the trigger of another table. */
export function fenceSql(url: string, { row, leases }: FenceSqlOptions): string {
  const tables = tablesOf(url)
  return row ? rowFenceSql(row, tables) : marksSql({ ...tables, leases })
}

import { invalid } from '../../contract/check.ts'
import { clientAt } from '../../stores/mysql/open.ts'
import { end, type FenceSqlOptions, installAt, type OpenMarks, openMarksOf } from '../open.ts'
import { mysqlFence, fenceSql as tableSql } from './index.ts'
import { MARKS } from './sql.ts'

/** The marks in the table that a URL names. */
export function openMarks(url: string): OpenMarks {
  const { client, tables } = clientAt(url)
  return openMarksOf(mysqlFence(client, tables).marks, () => end(client))
}

/** Creates the marks of the default fence in the database of a URL. Resolves to their table. */
export async function installFence(url: string): Promise<string> {
  const { client } = clientAt(url)
  await installAt(mysqlFence(client), client)
  return MARKS
}

/** The SQL that `installFence` runs. */
export const leaseFenceSql = (): string => tableSql()

/** The SQL for the table that a URL names. */
export function fenceSql(url: string, { row, leases }: FenceSqlOptions): string {
  if (row ?? leases) throw invalid('MySQL has no trigger for a table and no check of leases: both need PostgreSQL')
  return tableSql(clientAt(url).tables)
}

import { invalid } from '../../contract/check.ts'
import { clientAt } from '../../stores/mysql/open.ts'
import { type FenceSqlOptions, type OpenMarks, openMarksOf } from '../open.ts'
import { mysqlFence, fenceSql as tableSql } from './index.ts'
import { MARKS } from './sql.ts'

/** The marks in the table that a URL names. */
export function openMarks(url: string): OpenMarks {
  const { client, tables } = clientAt(url)
  // Not awaited: a client whose server does not respond would never end.
  return openMarksOf(mysqlFence(client, tables).marks, () => {
    ;(client as { end?(ended: () => void): unknown }).end?.(() => {})
  })
}

/** Creates the marks of the default fence in the database of a URL. Resolves to their table. */
export async function installFence(url: string): Promise<string> {
  const { client } = clientAt(url)
  try {
    await mysqlFence(client).install()
  } finally {
    ;(client as { end?(ended: () => void): unknown }).end?.(() => {})
  }
  return MARKS
}

/** The SQL for that. */
export const leaseFenceSql = (): string => tableSql()

/** The SQL for that table. */
export function fenceSql(url: string, { row, leases }: FenceSqlOptions): string {
  if (row ?? leases) throw invalid('MySQL has no trigger for a table and no check of leases: both need PostgreSQL')
  return tableSql(clientAt(url).tables)
}

import { invalid } from '../../contract/check.ts'
import { clientAt } from '../../stores/mysql/open.ts'
import { type FenceSqlOptions, type OpenMarks, openMarksOf } from '../open.ts'
import { mysqlFence, mysqlFenceSql } from './index.ts'

/** The marks in the table that a URL names. */
export function openMarks(url: string): OpenMarks {
  const { client, tables } = clientAt(url)
  // Not awaited: a client whose server does not respond would never end.
  return openMarksOf(mysqlFence(client, tables).marks, () => {
    ;(client as { end?(ended: () => void): unknown }).end?.(() => {})
  })
}

/** The SQL for that table. */
export function fenceSql(url: string, { row, leases }: FenceSqlOptions): string {
  if (row ?? leases) throw invalid('MySQL has no trigger for a table and no check of leases: both need PostgreSQL')
  return mysqlFenceSql(clientAt(url).tables)
}

import { existsSync } from 'node:fs'
import { invalid } from '../../contract/check.ts'
import { loadDriver } from '../../stores/sqlite/driver.ts'
import { type FenceSqlOptions, type OpenMarks, openMarksOf } from '../open.ts'
import { sqliteFence, fenceSql as tableSql } from './index.ts'

/** The marks in the database that `sqlite:PATH` names. */
export function openMarks(url: string): OpenMarks {
  const path = url.slice('sqlite:'.length)
  if (!existsSync(path))
    throw invalid(`the file ${JSON.stringify(path)} does not exist: give the database of the fenced data`)
  const database = new (loadDriver())(path)
  return openMarksOf(sqliteFence(database).marks, () => database.close())
}

/** The SQL for the table of marks. */
export function fenceSql(_url: string, { row, leases }: FenceSqlOptions): string {
  if (row ?? leases) throw invalid('SQLite has neither row triggers nor a check of leases: both need PostgreSQL')
  return tableSql()
}

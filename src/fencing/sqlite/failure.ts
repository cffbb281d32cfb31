import { LeaseError } from '../../contract/errors.ts'
import { missing, otherColumns, type Refusal, refused } from '../refusals.ts'

/** SQLite's result codes of a locked database. better-sqlite3 reports their names, node:sqlite their numbers. */
const BUSY = { SQLITE_BUSY: 5, SQLITE_LOCKED: 6, SQLITE_PROTOCOL: 15 }

export const IN_TRANSACTION = 'the database is already in a transaction: use fence.check(lease) in it'

/** Is it an error, or caused by one, that says another connection has the lock? Then retry soon. */
export function isBusy(error: unknown): boolean {
  const { errcode, code } = Object(LeaseError.is(error) ? error.cause : error) as { errcode?: number; code?: unknown }
  return Object.entries(BUSY).some(([name, number]) => (errcode ?? 0) % 256 === number || String(code).startsWith(name))
}

/** Converts the error of a fence's statement to a `LeaseError` that says what to do. */
export function failure(error: unknown, table: string): unknown {
  if (LeaseError.is(error) || !(error instanceof Error)) return error
  return refused(meaningOf(error, table), error)
}

function meaningOf(error: Error, table: string): Refusal {
  const { message } = error
  if (/no such table/.test(message))
    return missing(table, 'call fence.install(), or run what holdfast fence sql prints')
  if (/no such column|has no column/.test(message)) return otherColumns(table)
  if (/within a transaction/.test(message)) return ['INVALID_ARGUMENT', IN_TRANSACTION]
  if (!isBusy(error)) return ['STORE_UNAVAILABLE', 'SQLite failed to read or write the mark']
  const cure = 'retry, or open the database with a timeout (timeout: 5000) so that it waits'
  return ['STORE_UNAVAILABLE', `another connection has locked the database, and nothing was written: ${cure}`]
}

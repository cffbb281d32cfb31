import { LeaseError, type LeaseErrorCode } from '../../contract/errors.ts'

/** node:sqlite reports the number of SQLite's result code, better-sqlite3 its name. */
function isCode(error: unknown, number: number, name: string): boolean {
  const { errcode, code } = (error ?? {}) as { errcode?: unknown; code?: unknown }
  return (typeof errcode === 'number' && (errcode & 0xff) === number) || String(code).startsWith(name)
}

/** Another connection has the lock: retry soon. */
export function isBusy(error: unknown): boolean {
  return isCode(error, 5, 'SQLITE_BUSY') || isCode(error, 6, 'SQLITE_LOCKED')
}

/** The error of a fence's statement, as a `LeaseError` that says what to do. */
export function failure(error: unknown, table: string): unknown {
  if (LeaseError.is(error) || !(error instanceof Error)) return error
  const { message } = error
  const says = (code: LeaseErrorCode, text: string): LeaseError =>
    new LeaseError(code, `${text} (${message})`, { cause: error })
  if (/no such table/.test(message)) return says('NOT_MIGRATED', `the table ${table} is missing: call fence.install()`)
  if (/no such column|has no column/.test(message)) {
    const cure = 'use the same version of Holdfast everywhere, or give the option table'
    return says('FORMAT_MISMATCH', `the table ${table} has other columns: ${cure}`)
  }
  if (/within a transaction/.test(message))
    return says('INVALID_ARGUMENT', 'the database is already in a transaction: use fence.check(lease) in it')
  if (isBusy(error)) {
    const cure = 'retry, or open the database with a timeout (timeout: 5000) so that it waits'
    return says('STORE_UNAVAILABLE', `another connection has locked the database, and nothing was written: ${cure}`)
  }
  return says('STORE_UNAVAILABLE', 'SQLite failed to read or write the mark')
}

import { LeaseError } from '../../contract/errors.ts'

/** node:sqlite tells the number of SQLite's result code, better-sqlite3 its name. */
function isCode(error: unknown, number: number, name: string): boolean {
  const { errcode, code } = (error ?? {}) as { errcode?: unknown; code?: unknown }
  return (typeof errcode === 'number' && (errcode & 0xff) === number) || String(code).startsWith(name)
}

/** Somebody else has the lock: try again soon. */
export function isBusy(error: unknown): boolean {
  return isCode(error, 5, 'SQLITE_BUSY') || isCode(error, 6, 'SQLITE_LOCKED')
}

/** What SQLite said to a statement of the fence, as a `LeaseError` that says what to do. */
export function failure(error: unknown, table: string): unknown {
  if (LeaseError.is(error) || !(error instanceof Error)) return error
  const { message } = error
  const says = (code: 'INVALID_ARGUMENT' | 'STORE_UNAVAILABLE', text: string): LeaseError =>
    new LeaseError(code, `${text} (${message})`, { cause: error })
  if (/no such table|no such column|has no column/.test(message))
    return says('INVALID_ARGUMENT', `the table ${table} is missing or is another's: call fence.install() once`)
  if (/within a transaction/.test(message))
    return says('INVALID_ARGUMENT', 'the database is in a transaction already: use fence.check(lease) in it')
  if (isBusy(error)) {
    const cure = 'give the database a time-out (timeout: 5000), so that it waits, or try again'
    return says('STORE_UNAVAILABLE', `another connection has the database locked, and nothing was written: ${cure}`)
  }
  return says('STORE_UNAVAILABLE', 'SQLite cannot raise the mark now')
}

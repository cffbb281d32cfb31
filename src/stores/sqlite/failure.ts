import { accessSync, constants } from 'node:fs'
import { dirname } from 'node:path'
import { LeaseError } from '../../contract/errors.ts'

// These are the low bytes of SQLite's result codes: https://www.sqlite.org/rescode.html
const BUSY = 5
const LOCKED = 6
const READONLY = 8
const CORRUPT = 11
const FULL = 13
const CANTOPEN = 14
const PROTOCOL = 15
const NOTADB = 26

function resultCode(error: unknown): number | undefined {
  const code = error instanceof Error && 'errcode' in error ? error.errcode : undefined
  return typeof code === 'number' ? code & 0xff : undefined
}

/** Does another connection have the lock? Then a retry soon succeeds. */
export function isBusy(error: unknown): boolean {
  const code = resultCode(error)
  return code === BUSY || code === LOCKED || code === PROTOCOL
}

export function isFull(error: unknown): boolean {
  return resultCode(error) === FULL
}

/** Is the file not an SQLite database, or is its first page damaged? */
export function isNoDatabase(error: unknown): boolean {
  return resultCode(error) === NOTADB
}

/** Converts an error of SQLite into a `LeaseError` that says what to do. Other errors pass unchanged. */
export function failure(error: unknown, path: string): unknown {
  const code = resultCode(error)
  if (code === undefined) return error
  const file = JSON.stringify(path)
  const { message, errcode } = error as Error & { errcode: number }
  const said = `${message}, SQLite ${errcode}`
  if (code === FULL)
    return unavailable(`the disk of ${file} is full, and nothing was changed: free some space`, error, true)
  const problem = code === READONLY || code === CANTOPEN ? accessProblem(path) : undefined
  if (problem) return problem
  if (code === READONLY) return unavailable(`${file} cannot be written (${said}): check its permissions`, error, false)
  if (code === CANTOPEN)
    return unavailable(`${file} cannot be opened (${said}): check the limit of open files, and its folder`, error, true)
  if (code === NOTADB) {
    // The message does not say "move it away", because it most likely is a file of another program.
    const message = `${file} is another file, or its first page is damaged (${said}): give a path of its own`
    return new LeaseError('INVALID_ARGUMENT', message, { cause: error })
  }
  if (code === CORRUPT) {
    const cure =
      'stop all processes that use it, and move it away with its -wal and -shm files; a new one is then created'
    return unavailable(`${file} is a damaged SQLite database (${said}): ${cure}`, error, false)
  }
  return unavailable(`${file} cannot be read or written (${said}): check the disk and quotas`, error, true)
}

/** The reason why this user cannot use the file. `undefined`: the permissions are sufficient. */
export function accessProblem(path: string): LeaseError | undefined {
  const folder = dirname(path)
  for (const [place, mode] of [
    [path, constants.R_OK | constants.W_OK],
    [folder, constants.W_OK | constants.X_OK],
  ] as const) {
    try {
      accessSync(place, mode)
    } catch (error) {
      const { code } = error as NodeJS.ErrnoException
      const what = JSON.stringify(place)
      if (code === 'EROFS')
        return unavailable(`${what} is on a read-only file system: give a writable path`, error, false)
      const need = place === folder ? 'SQLite creates a -wal and a -shm file in it' : 'every holder writes to it'
      if (code === 'EACCES' || code === 'EPERM')
        return new LeaseError(
          'ACCESS_DENIED',
          `this user may not read and write ${what}: ${need}; give the user these rights, or another path`,
          { cause: error },
        )
    }
  }
  return undefined
}

function unavailable(message: string, cause: unknown, retryable: boolean): LeaseError {
  return new LeaseError('STORE_UNAVAILABLE', message, { cause, retryable })
}

import { createHash } from 'node:crypto'
import { type BigIntStats, lstatSync, realpathSync } from 'node:fs'
import { basename, dirname, join, relative, resolve } from 'node:path'
import { checkKeys, checkWait, invalid, show } from '../../contract/check.ts'
import { LeaseError } from '../../contract/errors.ts'
import type { SharedFolder } from '../../stores/sqlite/path.ts'
import { markOfLease } from '../fence.ts'
import type { Holder, Mark } from '../mark.ts'

export interface FileFenceOptions extends SharedFolder {
  /** The database of the marks, the same for all writers. @default `.holdfast-fence.db` in the folder of the file */
  readonly marksPath?: string | undefined
  /** The epoch, which is compared before the token. Raise it after leases have moved to another store. @default 0 */
  readonly epoch?: number | undefined
  /** Milliseconds to wait while another process writes. @default 5_000 */
  readonly wait?: number | undefined
}

/** A file, and the mark that a holder presents to it. */
export interface Place {
  readonly path: string
  readonly folder: string
  readonly marks: string
  /** The resource: the path relative to the folder of the marks, which may be mounted elsewhere under another name. */
  readonly key: string
  readonly mark: Mark
  readonly wait: number
  readonly signal: AbortSignal | undefined
  /** The mode of the file that is replaced. */
  readonly mode: number | undefined
}

/** The name of the database in the folder of the files. */
export const MARKS = '.holdfast-fence.db'

const known = new Set(['marksPath', 'epoch', 'wait', 'allowSharedFolder'])

/** Throws `INVALID_ARGUMENT` for invalid options. */
export function checkFileFence(options: FileFenceOptions): void {
  checkKeys(options, known, 'fileFence')
  if (options.wait !== undefined) checkWait(options.wait, 'wait')
  if (options.marksPath !== undefined) checkPath(options.marksPath)
}

/** Throws `INVALID_ARGUMENT` for a file that cannot be replaced. */
export function placeOf(
  holder: Holder,
  file: string,
  options: FileFenceOptions,
  signal: AbortSignal | undefined,
): Place {
  const { marksPath, epoch, wait = 5_000 } = options
  const mark = markOfLease(holder, { epoch, resource: 'a file' }, 'a file')
  checkPath(file)
  const folder = realFolder(dirname(resolve(file)))
  const path = join(folder, basename(resolve(file)))
  const stats = look(path)
  if (stats && !stats.isFile())
    throw invalid(
      `${show(path)} is ${stats.isSymbolicLink() ? 'a link' : 'not a file'}: give the path of the file itself`,
    )
  const database = marksPath === undefined ? join(folder, MARKS) : realFile(resolve(marksPath))
  if (look(database)?.isSymbolicLink())
    throw invalid(`${show(database)} is a link: delete it, or give the path of the database itself as marksPath`)
  return {
    path,
    folder,
    marks: database,
    key: relative(dirname(database), path),
    mark,
    wait,
    signal,
    mode: stats && modeFor(stats),
  }
}

/** The prefix of the names of the file's temporary files. Its length does not depend on the name of the file. */
export function temporaryPrefix({ path }: Place): string {
  return `.fence-${createHash('sha256').update(basename(path)).digest('hex').slice(0, 16)}-`
}

/** Converts a system error to a `LeaseError`. Other errors pass unchanged. */
export function fileFailure(error: unknown, path: string): unknown {
  if (!(error instanceof Error) || !('syscall' in error) || LeaseError.is(error)) return error
  const code = isDenied(error) ? 'ACCESS_DENIED' : 'STORE_UNAVAILABLE'
  return new LeaseError(code, `${show(path)} could not be replaced: ${error.message}`, { cause: error })
}

/** Does this user lack the permission? */
function isDenied(error: unknown): boolean {
  return ['EACCES', 'EPERM'].includes((error as NodeJS.ErrnoException).code ?? '')
}

/** Throws `INVALID_ARGUMENT` unless the value is a path. */
export function checkPath(path: unknown): asserts path is string {
  if (typeof path === 'string' && path !== '' && !path.includes('\0')) return
  throw invalid(`a fence of files needs the path of a file, not ${show(path)}`)
}

/**
 * The path without links, also if the file is missing. The key of a mark is relative to its folder, so with two names of
 * the database one file would have two marks.
 */
function realFile(path: string): string {
  const folder = realFolder(dirname(path))
  const there = join(folder, basename(path))
  try {
    return realpathSync(there)
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException
    if (code !== 'ENOENT')
      throw unusable(error, `the marks ${show(path)} cannot be used: give another path (${message})`)
    return there // a link to a missing file is refused: its author would choose where the database is created
  }
}

function realFolder(folder: string): string {
  try {
    return realpathSync(folder)
  } catch (error) {
    const { message } = error as Error
    throw unusable(error, `the folder ${show(folder)} cannot be used: create it, or give another (${message})`)
  }
}

function unusable(cause: unknown, message: string): LeaseError {
  return new LeaseError(isDenied(cause) ? 'ACCESS_DENIED' : 'INVALID_ARGUMENT', message, { cause })
}

/**
 * The mode of the new file, which belongs to the writer. With a set-user-id bit, or with permissions that another user
 * chose, it would give that user the rights of the writer.
 */
function modeFor({ mode, uid }: BigIntStats): number {
  const isForeign = Number(uid) !== (process.geteuid?.() ?? Number(uid))
  return isForeign ? 0o600 : Number(mode) & 0o777
}

function look(path: string): BigIntStats | undefined {
  try {
    return lstatSync(path, { bigint: true, throwIfNoEntry: false })
  } catch (error) {
    throw unusable(error, `${show(path)} cannot be used: give another path (${(error as Error).message})`)
  }
}

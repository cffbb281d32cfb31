import { createHash } from 'node:crypto'
import { type BigIntStats, lstatSync, realpathSync } from 'node:fs'
import { basename, dirname, join, relative, resolve } from 'node:path'
import { checkKeys, checkSignal, checkWait, invalid, show } from '../../contract/check.ts'
import { LeaseError } from '../../contract/errors.ts'
import { showingOf } from '../fence.ts'
import type { Holder, Mark } from '../mark.ts'

export interface FileFenceOptions {
  /** The database that keeps the marks, the same for all writers. @default `.holdfast-fence.db` beside the file */
  readonly marks?: string | undefined
  /** Compared before the token, for when leases have moved to another store. @default 0 */
  readonly lineage?: number | undefined
  /** Milliseconds to wait while another process writes. @default 5_000 */
  readonly wait?: number | undefined
  readonly signal?: AbortSignal | undefined
}

/** A file, and what a holder shows to it. */
export interface Place {
  readonly path: string
  readonly folder: string
  readonly marks: string
  /** The file as the marks know it: relative to their folder, since that may have other names elsewhere. */
  readonly key: string
  readonly mark: Mark
  readonly wait: number
  readonly signal: AbortSignal | undefined
  /** Of the file that is there. */
  readonly mode: number | undefined
}

/** Of the marks of a folder. */
export const MARKS = '.holdfast-fence.db'

const known = new Set(['marks', 'lineage', 'wait', 'signal'])

/** Throws `INVALID_ARGUMENT` for what is no file that can be replaced. */
export function placeOf(file: string, holder: Holder, options: FileFenceOptions): Place {
  checkKeys(options, known, 'a fence of files')
  const { marks, lineage, wait = 5_000, signal } = options
  checkWait(wait, 'wait')
  checkSignal(signal)
  const { mark } = showingOf(holder, { lineage, resource: 'a file' })
  for (const path of marks === undefined ? [file] : [file, marks]) checkPath(path)
  const folder = realFolder(dirname(resolve(file)))
  const path = join(folder, basename(resolve(file)))
  const stats = look(path)
  if (stats && !stats.isFile())
    throw invalid(`${show(path)} is ${stats.isSymbolicLink() ? 'a link: give the path of the file itself' : 'no file'}`)
  const marksFolder = marks === undefined ? folder : realFolder(dirname(resolve(marks)))
  return {
    path,
    folder,
    marks: join(marksFolder, marks === undefined ? MARKS : basename(resolve(marks))),
    key: relative(marksFolder, path),
    mark,
    wait,
    signal,
    mode: stats && Number(stats.mode) & 0o7777,
  }
}

/** What the names of temporary files of this file begin with. It does not grow with the name of the file. */
export function temporaryPrefix({ path }: Place): string {
  return `.fence-${createHash('sha256').update(basename(path)).digest('hex').slice(0, 16)}-`
}

/** What the system said, as a `LeaseError`. What is one, or did not come from the system, passes unchanged. */
export function fileFailure(error: unknown, path: string): unknown {
  if (!(error instanceof Error) || !('syscall' in error) || LeaseError.is(error)) return error
  return new LeaseError('STORE_UNAVAILABLE', `${show(path)} cannot be replaced: ${error.message}`, { cause: error })
}

/** Throws `INVALID_ARGUMENT` for what is no path. */
export function checkPath(path: unknown): asserts path is string {
  if (typeof path === 'string' && path !== '' && !path.includes('\0')) return
  throw invalid(`a fence of files needs the path of a file, not ${show(path)}`)
}

function realFolder(folder: string): string {
  try {
    return realpathSync(folder)
  } catch (error) {
    throw invalid(`the folder ${show(folder)} cannot be used: ${(error as Error).message}`)
  }
}

function look(path: string): BigIntStats | undefined {
  return lstatSync(path, { bigint: true, throwIfNoEntry: false })
}

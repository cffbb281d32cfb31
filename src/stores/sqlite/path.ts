import { type BigIntStats, closeSync, openSync, readlinkSync, realpathSync, statSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { invalid } from '../../contract/check.ts'
import { LeaseError } from '../../contract/errors.ts'
import { accessProblem } from './failure.ts'
import { isMountPoint, riskyFileSystem } from './mounts.ts'

/** The option `allowSharedFolder`. */
export interface SharedFolder {
  /**
   * Accept a file on FUSE, 9p, virtiofs or the like, such as a folder of the host of a virtual machine. Use it only if all
   * processes that use the file run on one kernel and reach the file through this mount. Otherwise two may hold one name.
   * @default false
   */
  readonly allowSharedFolder?: boolean | undefined
}

/** Throws a `LeaseError` unless this path can be an SQLite database. */
export function checkPath(path: string, allowSharedFolder = false): void {
  const file = JSON.stringify(path)
  const stats = look(path)
  if (stats?.isDirectory())
    throw invalid(`${file} is a folder: give the path of a file, such as ${JSON.stringify(join(path, 'leases.db'))}`)
  if (stats && !stats.isFile()) throw invalid(`${file} is not a regular file: give the path of a file`)
  if (stats) checkOnlyPath(path, stats)
  const folder = dirname(path)
  const place = stats ?? look(folder)
  if (!place) throw invalid(`the folder ${JSON.stringify(folder)} does not exist: create it, or give another path`)
  if (!stats && !place.isDirectory()) throw invalid(`${JSON.stringify(folder)} is not a folder: give another path`)
  const { type, kind } = riskyFileSystem(place.dev) ?? {}
  const cure = 'give a path on a local disk, or use a store with a server, such as Redis'
  if (kind === 'network')
    throw invalid(`${file} is on a network file system (${type}), where SQLite's locks are not reliable: ${cure}`)
  if (kind === 'shared' && !allowSharedFolder)
    throw invalid(
      `${file} is on a shared folder (${type}), where SQLite's locks may not reach all processes that see the file: ` +
        `${cure}. If all of them run on one kernel and use this mount, pass the option allowSharedFolder: true`,
    )
  const problem = accessProblem(path)
  if (problem) throw problem
}

/**
 * Refuses a file that has more than one path. SQLite keeps its log and its locks in files next to the path. Two paths of
 * one file would each have their own, so two processes could hold one name. Symbolic links are followed, so they are not a
 * second path.
 */
function checkOnlyPath(path: string, { nlink }: BigIntStats): void {
  const file = JSON.stringify(path)
  if (nlink > 1n)
    throw invalid(
      `${file} has ${nlink} names (hard links), and what is stored under one is unknown under another: give a path of its own`,
    )
  if (isMounted(path))
    throw invalid(
      `${file} is mounted as a single file, apart from SQLite's -wal and -shm files: mount its folder instead`,
    )
}

function isMounted(path: string): boolean {
  try {
    return isMountPoint(realpathSync(path))
  } catch {
    return false // the file is gone, and will be created
  }
}

/**
 * Creates the file for this user only, if it is missing. A user who can read an SQLite file can also lock it and block
 * every writer. SQLite gives its -wal and -shm files the same mode. An existing file keeps its mode.
 */
export function createPrivate(path: string): void {
  try {
    closeSync(openSync(targetOf(path), 'wx', 0o600))
  } catch {
    // The file exists, or SQLite reports the problem when it opens the file.
  }
}

/** The path at which SQLite creates the file. It follows a dangling link, which `wx` refuses. */
function targetOf(path: string): string {
  try {
    return targetOf(resolve(dirname(path), readlinkSync(path)))
  } catch {
    return path
  }
}

function look(path: string): BigIntStats | undefined {
  try {
    return statSync(path, { bigint: true, throwIfNoEntry: false })
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException
    if (code === 'ENOTDIR') return undefined
    const cure = 'give this user the right to search all folders above it, or another path'
    const isDenied = code === 'EACCES' || code === 'EPERM'
    throw new LeaseError(isDenied ? 'ACCESS_DENIED' : 'STORE_UNAVAILABLE', `${message}: ${cure}`, {
      cause: error,
      retryable: false,
    })
  }
}

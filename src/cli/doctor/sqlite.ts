import { statSync } from 'node:fs'
import { dirname } from 'node:path'
import { type RiskyFileSystem, riskyFileSystem } from '../../stores/sqlite/mounts.ts'
import { type Finding, ok, problem, warning } from './finding.ts'

/** Checks the file of a URL from outside: opening it here would drop the locks of the store. */
export async function checkSqlite(url: string): Promise<Finding[]> {
  const path = url.slice('sqlite:'.length)
  return [fileSystem(riskyFileSystem(statSync(path, { bigint: true }).dev)), fileMode(path), folderMode(dirname(path))]
}

export function fileSystem(risky: RiskyFileSystem | undefined): Finding {
  if (!risky) return ok('sqlite-file-system', 'the file is not on a known network file system or shared folder')
  const { type, kind } = risky
  if (kind === 'shared') {
    const why = "SQLite's locks may not reach all processes that see the file"
    return problem('sqlite-file-system', `the file is on a shared folder (${type})`, why, 'use a local disk')
  }
  const why = "SQLite's locks do not reach other machines there"
  return problem('sqlite-file-system', `the file is on a network file system (${type})`, why, 'use a local disk')
}

function fileMode(path: string): Finding {
  const mode = statSync(path).mode & 0o777
  const what = `the mode of the file is ${mode.toString(8)}`
  if ((mode & 0o077) === 0) return ok('sqlite-file-mode', what)
  const why = 'other users can lock the file, which stops all leases in it'
  return warning('sqlite-file-mode', what, why, 'run chmod 600 on the file, unless it is shared on purpose')
}

function folderMode(folder: string): Finding {
  const mode = statSync(folder).mode & 0o7777
  const what = `the mode of the folder is ${mode.toString(8)}`
  // With the sticky bit, as in /tmp, other users cannot remove the file.
  if ((mode & 0o022) === 0 || (mode & 0o1000) !== 0) return ok('sqlite-folder-mode', what)
  const why = 'other users can replace the file, and with it every lease'
  return warning('sqlite-folder-mode', what, why, 'run chmod go-w on the folder')
}

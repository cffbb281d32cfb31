import { statSync } from 'node:fs'
import { join } from 'node:path'
import { invalid, show } from '../../contract/check.ts'
import { LONGEST_REQUEST } from '../../contract/time.ts'
import type { SharedFolder } from '../../stores/sqlite/path.ts'
import type { KeptMarks } from '../marks.ts'
import { MarksFile } from './marks-file.ts'
import { checkPath, MARKS } from './place.ts'

/**
 * The high-water marks of the files of a folder. `path` is that folder, or the database that the writers name by their
 * option `marksPath`. A resource is a file: its path relative to the folder of the database. Each call opens the database, and
 * waits up to 5 s while another process has locked it. Each call rejects `INVALID_ARGUMENT` if no file was fenced there
 * yet, and `STORE_UNAVAILABLE`.
 * @throws LeaseError INVALID_ARGUMENT
 */
export function fileMarks(path: string, options: SharedFolder = {}): KeptMarks {
  checkPath(path)

  async function use<T>(work: (marks: KeptMarks) => Promise<T>, signal?: AbortSignal): Promise<T> {
    using file = new MarksFile(databaseAt(path), options)
    return await work(await file.whenUnlocked(() => file.kept(), LONGEST_REQUEST, signal))
  }

  return {
    raise: (resource, mark, signal) => use(marks => marks.raise(resource, mark, signal), signal),
    list: prefix => use(marks => marks.list(prefix)),
    advance: resource => use(marks => marks.advance(resource)),
    prune: (olderThan, prefix) => use(marks => marks.prune(olderThan, prefix)),
  }
}

function databaseAt(path: string): string {
  const database = [join(path, MARKS), path].find(isFilled)
  if (database !== undefined) return database
  const cure = 'give the folder of the fenced files, or the database that marksPath of the writers names'
  throw invalid(`this user can see no marks at ${show(path)}: ${cure}`)
}

/** SQLite treats a file of 0 or 1 bytes as a new database. */
function isFilled(path: string): boolean {
  try {
    const stats = statSync(path)
    return stats.isFile() && stats.size > 1
  } catch {
    return false
  }
}

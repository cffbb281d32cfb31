import { statSync } from 'node:fs'
import { join } from 'node:path'
import { invalid, show } from '../../contract/check.ts'
import { LONGEST_REQUEST } from '../../contract/time.ts'
import type { KeptMarks } from '../fence.ts'
import { MarksFile } from './marks-file.ts'
import { checkPath, MARKS } from './place.ts'

/**
 * The marks of the files of a folder, or those in the database that the option `marks` of the writers names. A resource
 * is a file, by its path from the folder of the database. Each call opens the database, and waits for up to 5 s while
 * another process has it locked. Each rejects `INVALID_ARGUMENT` where no file was fenced so far, and
 * `STORE_UNAVAILABLE`.
 * @throws LeaseError INVALID_ARGUMENT
 */
export function fileMarks(path: string): KeptMarks {
  checkPath(path)

  async function use<T>(work: (marks: KeptMarks) => Promise<T>, signal?: AbortSignal): Promise<T> {
    using file = new MarksFile(databaseAt(path))
    return await work(await file.patiently(() => file.kept(), LONGEST_REQUEST, signal))
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
  const cure = 'give the folder of files that were fenced, or the database that their option marks names'
  throw invalid(`there are no marks at ${show(path)} that this user can see: ${cure}`)
}

/** SQLite takes a file of no byte, or of one, for a database that is to be made. */
function isFilled(path: string): boolean {
  try {
    const stats = statSync(path)
    return stats.isFile() && stats.size > 1
  } catch {
    return false
  }
}

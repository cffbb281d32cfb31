import { statSync } from 'node:fs'
import type { DatabaseSync } from 'node:sqlite'
import { invalid } from '../../contract/check.ts'
import { LeaseError } from '../../contract/errors.ts'
import { loadDriver } from './driver.ts'
import { failure, isBusy, isFull } from './failure.ts'
import { checkPath, createPrivate } from './path.ts'
import { Rows } from './rows.ts'
import { APPLICATION_ID, FORMAT, SCHEMA } from './schema.ts'

/**
 * One connection to one file. No other code in this process may open the file, not even to read it. Closing it would drop
 * the process's POSIX locks on the file, which SQLite relies on.
 */
export class Connection {
  readonly #path: string
  readonly #database: DatabaseSync
  readonly #rows: Rows
  readonly #identity: string | undefined

  /** Creates the file if it is missing. Throws a `LeaseError` or an error of SQLite. */
  constructor(path: string, allowSharedFolder: boolean) {
    checkPath(path, allowSharedFolder)
    createPrivate(path)
    const Database = loadDriver()
    const database = new Database(path)
    try {
      prepare(database, path)
      this.#rows = new Rows(database)
    } catch (error) {
      database.close()
      throw error
    }
    this.#path = path
    this.#database = database
    this.#identity = identity(path)
  }

  /**
   * Returns false once the path leads to another file or to none. Other processes would not see what is written to the old
   * file.
   */
  get isCurrent(): boolean {
    return identity(this.#path) === this.#identity
  }

  /** Lets `work` read one snapshot. It takes no lock that blocks others. */
  read<T>(work: (rows: Rows) => T): T {
    return this.#transaction('begin', work)
  }

  /** Runs `work` in a transaction. It locks first, so that the data and the time that `work` reads are current. */
  write<T>(work: (rows: Rows) => T): T {
    return this.#transaction('begin immediate', work)
  }

  close(): void {
    this.#database.close()
  }

  #transaction<T>(begin: string, work: (rows: Rows) => T): T {
    this.#database.exec(begin)
    try {
      const answer = work(this.#rows)
      this.#commit()
      return answer
    } catch (error) {
      this.#rollback()
      throw error
    }
  }

  #commit(): void {
    try {
      this.#database.exec('commit')
    } catch (error) {
      if (isBusy(error) || isFull(error)) throw error // the transaction is certainly not committed
      const { message } = failure(error, this.#path) as Error
      throw new LeaseError('OUTCOME_UNKNOWN', `${message}: it may or may not be written`, { cause: error })
    }
  }

  #rollback(): void {
    try {
      this.#database.exec('rollback')
    } catch {
      // SQLite itself rolls back if the disk fails.
    }
  }
}

function identity(path: string): string | undefined {
  const stats = statSync(path, { bigint: true, throwIfNoEntry: false })
  return stats && `${stats.dev}:${stats.ino}`
}

function prepare(database: DatabaseSync, path: string): void {
  // SQLite's own busy handler sleeps in the main thread, longer each time. It blocked one of two processes for 3 s.
  database.exec('pragma busy_timeout = 0')
  database.exec('begin') // reads one snapshot, because another process may be filling the file
  const isReady = checkFormat(database, path) // checked first, so that nothing is written to another application's database
  database.exec('commit')
  const mode = database.prepare('pragma journal_mode = wal').get()?.journal_mode
  if (mode !== 'wal') {
    const cure = 'give a path on a local disk'
    throw invalid(`the file system of ${JSON.stringify(path)} does not support shared memory (WAL): ${cure}`)
  }
  // With NORMAL, a power failure may lose the last transactions and their tokens.
  database.exec('pragma synchronous = full')
  if (isReady) return
  database.exec('begin immediate')
  if (!checkFormat(database, path)) database.exec(SCHEMA) // several processes may have found it empty
  database.exec('commit')
}

/** Returns false for a database that is still empty. */
function checkFormat(database: DatabaseSync, path: string): boolean {
  const application = number(database, 'pragma application_id')
  const version = number(database, 'pragma user_version')
  const file = JSON.stringify(path)
  if (application === 0 && version === 0 && number(database, 'select count(*) from sqlite_schema') === 0) return false
  if (application !== APPLICATION_ID)
    throw invalid(`${file} is a database of another application: give the path of a new file`)
  if (version === FORMAT) return true
  const cure = version > FORMAT ? 'use a newer version' : 'stop all processes that use it, and move it away'
  const message = `${file} has format ${version}, and this version of Holdfast supports format ${FORMAT}: ${cure}`
  throw new LeaseError('FORMAT_MISMATCH', message)
}

function number(database: DatabaseSync, sql: string): number {
  return Number(Object.values(database.prepare(sql).get() ?? {})[0])
}

import { dirname, join } from 'node:path'
import type { DatabaseSync } from 'node:sqlite'
import { invalid, show } from '../../contract/check.ts'
import { LeaseError } from '../../contract/errors.ts'
import { loadDriver } from '../../stores/sqlite/driver.ts'
import { failure, isNoDatabase } from '../../stores/sqlite/failure.ts'
import { checkPath, createPrivate, type SharedFolder } from '../../stores/sqlite/path.ts'
import { compareMarks, type Mark, staleToken } from '../mark.ts'
import type { KeptMarks } from '../marks.ts'
import { isBusy } from '../sqlite/failure.ts'
import { fenceSql, sqliteFence } from '../sqlite/index.ts'
import { whenUnlocked } from '../sqlite/unlocked.ts'

/** The text `HFFM`, which marks our databases. A database of another application is never written to. */
const APPLICATION_ID = 0x4846464d

/** The table. The SQLite fence has the same one, so the same code lists and changes marks. */
const SCHEMA = `
${fenceSql()}
pragma application_id = ${APPLICATION_ID};
pragma user_version = 2;
`

/**
 * The marks of files, in an SQLite database. Its write lock also makes a check and a rename atomic. The lock ends with
 * its process, so a kill leaves nothing to clean up. The database uses a rollback journal instead of WAL, so between
 * writes it is a single file.
 */
export class MarksFile implements Disposable {
  readonly #path: string
  readonly #allowSharedFolder: boolean | undefined
  #database: DatabaseSync | undefined

  constructor(path: string, { allowSharedFolder }: SharedFolder) {
    this.#path = path
    this.#allowSharedFolder = allowSharedFolder
  }

  /** Raises the mark durably. Returns false if it was equal before. Throws `STALE_TOKEN`. */
  raise(file: string, mark: Mark): boolean {
    return this.#transaction(database => {
      if (this.#compare(database, file, mark) === 0) return false
      database
        .prepare('insert or replace into holdfast_fence (resource, epoch, token) values (?, ?, ?)')
        .run(file, mark.epoch, mark.token)
      return true
    })
  }

  /** Runs `work` while no process can raise a mark. Throws `STALE_TOKEN` instead if a newer holder has raised it. */
  whileHighest(file: string, mark: Mark, work: () => void): void {
    this.#transaction(database => {
      this.#compare(database, file, mark)
      work()
      return false
    })
  }

  /** All marks in the database, usable until it is closed. */
  kept(): KeptMarks {
    return this.#transaction(database => sqliteFence(database).marks)
  }

  /** Calls `use`, and retries for up to `wait` ms while another process has locked the database. */
  async whenUnlocked<T>(use: () => T, wait: number, signal: AbortSignal | undefined): Promise<T> {
    try {
      return await whenUnlocked(use, wait, signal)
    } catch (error) {
      if (isNoDatabase(error)) throw foreign(this.#path)
      throw isBusy(error) ? locked(this.#path, wait) : failure(error, this.#path)
    }
  }

  [Symbol.dispose](): void {
    this.#database?.close()
    this.#database = undefined
  }

  /** Compares `mark` with the stored one: 0 if equal, above 0 if higher. Throws `STALE_TOKEN` if it is lower. */
  #compare(database: DatabaseSync, file: string, mark: Mark): number {
    const statement = database.prepare("select epoch, token from holdfast_fence where resource = ? and slot = ''")
    statement.setReadBigInts(true)
    const row = statement.get(file)
    if (!row) return 1
    const highest = { epoch: Number(row.epoch), token: row.token as bigint }
    const order = compareMarks(mark, highest)
    if (order < 0) throw staleToken(join(dirname(this.#path), file), mark, highest)
    return order
  }

  /** Runs `work` in a transaction and returns its result. `work` returns false if it changed nothing. */
  #transaction<T>(work: (database: DatabaseSync) => T): T {
    this.#database ??= open(this.#path, this.#allowSharedFolder)
    const database = this.#database
    database.exec('begin immediate')
    try {
      prepare(database, this.#path)
      const result = work(database)
      // Even without changes, a commit may fail with SQLITE_BUSY, and the retry would rename a second time.
      database.exec(result === false ? 'rollback' : 'commit')
      return result
    } catch (error) {
      this[Symbol.dispose]() // rolls back, even if SQLite has already done so
      throw error
    }
  }
}

function open(path: string, allowSharedFolder: boolean | undefined): DatabaseSync {
  checkPath(path, allowSharedFolder)
  const Database = loadDriver()
  createPrivate(path)
  const database = new Database(path)
  // With FULL, a power failure may restore the journal of a committed transaction.
  database.exec('pragma busy_timeout = 0; pragma synchronous = extra')
  return database
}

function prepare(database: DatabaseSync, path: string): void {
  const id = database.prepare('pragma application_id').get()?.application_id
  if (id === APPLICATION_ID) return
  if (id !== 0 || database.prepare('select 1 from sqlite_schema').get()) throw foreign(path)
  database.exec(SCHEMA)
}

function foreign(path: string): LeaseError {
  return invalid(`${show(path)} is damaged, or not a database of marks: give marks a database of their own`)
}

function locked(path: string, wait: number): LeaseError {
  const cure = 'if that process is paused, resume or end it'
  return new LeaseError('STORE_UNAVAILABLE', `another process locked ${JSON.stringify(path)} for ${wait} ms: ${cure}`)
}

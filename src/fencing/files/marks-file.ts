import { dirname, join } from 'node:path'
import type { DatabaseSync } from 'node:sqlite'
import { invalid, show } from '../../contract/check.ts'
import { LeaseError } from '../../contract/errors.ts'
import { loadDriver } from '../../stores/sqlite/driver.ts'
import { failure, isBusy, isNoDatabase } from '../../stores/sqlite/failure.ts'
import { checkPath, createPrivate } from '../../stores/sqlite/file.ts'
import type { KeptMarks } from '../fence.ts'
import { compareMarks, type Mark, staleToken } from '../mark.ts'
import { sqliteFence, sqliteFenceSql } from '../sqlite/index.ts'

/** `HFFM`: no other application's database is ever written to. */
const APPLICATION_ID = 0x4846464d

/** The table is that of the fence of SQLite, so that marks are looked at and changed by hand in the same way. */
const SCHEMA = `
${sqliteFenceSql()}
pragma application_id = ${APPLICATION_ID};
pragma user_version = 1;
`

/** Milliseconds; the mean pause of a random one before the next try for the lock. */
const PAUSE = 1.5

/**
 * The marks of files, in a file of SQLite, whose write lock is also what makes a check and a rename one step: it ends
 * with the process that has it, so that nobody has to clear up after a kill. With a rollback journal and not WAL, so
 * that nothing but this one file is left between writes.
 */
export class MarksFile implements Disposable {
  readonly #path: string
  #database: DatabaseSync | undefined

  constructor(path: string) {
    this.#path = path
  }

  /** Makes the mark durable; false if it was the same before. Throws `STALE_TOKEN`. */
  raise(file: string, mark: Mark): boolean {
    return this.#transaction(database => {
      if (this.#compare(database, file, mark) === 0) return false
      database
        .prepare('insert or replace into holdfast_fence (resource, lineage, token) values (?, ?, ?)')
        .run(file, mark.lineage, mark.token)
      return true
    })
  }

  /** Nobody raises a mark while `work` runs. Throws `STALE_TOKEN` before it does. */
  whileHighest(file: string, mark: Mark, work: () => void): void {
    this.#transaction(database => {
      this.#compare(database, file, mark)
      work()
      return false
    })
  }

  /** All that are in it, for as long as it is open. */
  kept(): KeptMarks {
    return this.#transaction(database => sqliteFence(database).marks)
  }

  /** Tries `use` until no other process has the lock, for at most `wait` ms. */
  async patiently<T>(use: () => T, wait: number, signal: AbortSignal | undefined): Promise<T> {
    const start = performance.now()
    for (;;) {
      signal?.throwIfAborted()
      try {
        return use()
      } catch (error) {
        if (isNoDatabase(error)) throw foreign(this.#path)
        if (!isBusy(error)) throw failure(error, this.#path)
        if (performance.now() - start >= wait) throw locked(this.#path, wait)
      }
      await new Promise(resolve => setTimeout(resolve, 2 * PAUSE * Math.random()))
    }
  }

  [Symbol.dispose](): void {
    this.#database?.close()
    this.#database = undefined
  }

  /** 0 if it is the highest that was shown, above 0 if it is higher. */
  #compare(database: DatabaseSync, file: string, mark: Mark): number {
    const statement = database.prepare('select lineage, token from holdfast_fence where resource = ?')
    statement.setReadBigInts(true)
    const row = statement.get(file)
    if (!row) return 1
    const highest = { lineage: Number(row.lineage), token: row.token as bigint }
    const order = compareMarks(mark, highest)
    if (order < 0) throw staleToken(join(dirname(this.#path), file), mark, highest)
    return order
  }

  /** Answers what `work` does, which is false if it changed nothing. */
  #transaction<T>(work: (database: DatabaseSync) => T): T {
    this.#database ??= open(this.#path)
    const database = this.#database
    database.exec('begin immediate')
    try {
      prepare(database, this.#path)
      const result = work(database)
      // Also where nothing was changed a commit may find the file busy, and then a rename would be done a second time.
      database.exec(result === false ? 'rollback' : 'commit')
      return result
    } catch (error) {
      this[Symbol.dispose]() // which rolls back, also where SQLite has done so by itself
      throw error
    }
  }
}

function open(path: string): DatabaseSync {
  checkPath(path)
  const Database = loadDriver()
  createPrivate(path)
  const database = new Database(path)
  // EXTRA, since with FULL a power failure may bring back the journal of a transaction that was committed.
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
  return invalid(`${show(path)} is a file of something else, or damaged: marks need a database of their own`)
}

function locked(path: string, wait: number): LeaseError {
  const who = 'by another process: if that one is stopped, end it or let it go on'
  return new LeaseError('STORE_UNAVAILABLE', `${JSON.stringify(path)} was locked for ${wait} ms ${who}`)
}

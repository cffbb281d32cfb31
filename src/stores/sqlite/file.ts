import { type BigIntStats, closeSync, openSync, readlinkSync, statSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import type { DatabaseSync } from 'node:sqlite'
import { LeaseError } from '../../contract/errors.ts'
import { loadDriver } from './driver.ts'
import { accessProblem, failure, isBusy, isFull } from './failure.ts'
import { Leases } from './leases.ts'
import { networkFileSystem } from './network.ts'
import { APPLICATION_ID, FORMAT, SCHEMA } from './schema.ts'

/**
 * One connection to one file. Nothing else in this process may open the file, not even to read it: closing that would
 * drop the locks that SQLite holds on it for the whole process (POSIX).
 */
export class File {
  readonly #path: string
  readonly #database: DatabaseSync
  readonly #leases: Leases
  readonly #identity: string | undefined

  /** Makes the file if there is none. Throws a `LeaseError` or what SQLite throws. */
  constructor(path: string) {
    checkPath(path)
    createPrivate(path)
    const Database = loadDriver()
    const database = new Database(path)
    try {
      prepareFile(database, path)
      this.#leases = new Leases(database)
    } catch (error) {
      database.close()
      throw error
    }
    this.#path = path
    this.#database = database
    this.#identity = identity(path)
  }

  /** False once the path leads to another file, or to none: who goes on with the old one is alone with it. */
  get isCurrent(): boolean {
    return identity(this.#path) === this.#identity
  }

  /** What `work` reads is of one moment. It takes no lock that others would wait for. */
  read<T>(work: (leases: Leases) => T): T {
    return this.#transaction('begin', work)
  }

  /** All of `work` or nothing. It gets the lock first, so that what it reads, and the time too, is current. */
  write<T>(work: (leases: Leases) => T): T {
    return this.#transaction('begin immediate', work)
  }

  close(): void {
    this.#database.close()
  }

  #transaction<T>(begin: string, work: (leases: Leases) => T): T {
    this.#database.exec(begin)
    try {
      const answer = work(this.#leases)
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
      if (isBusy(error) || isFull(error)) throw error // not committed, for certain
      const { message } = failure(error, this.#path) as Error
      throw new LeaseError('OUTCOME_UNKNOWN', `${message}; nobody knows whether it was written`, { cause: error })
    }
  }

  #rollback(): void {
    try {
      this.#database.exec('rollback')
    } catch {
      // SQLite rolls back by itself when the disk fails, and then there is nothing to roll back
    }
  }
}

function identity(path: string): string | undefined {
  const stats = statSync(path, { bigint: true, throwIfNoEntry: false })
  return stats && `${stats.dev}:${stats.ino}`
}

/** Throws a `LeaseError` unless there can be a database of SQLite at this path. */
export function checkPath(path: string): void {
  const file = JSON.stringify(path)
  const stats = look(path)
  if (stats?.isDirectory())
    throw wrong(`${file} is a folder: give the path of a file, such as ${JSON.stringify(join(path, 'leases.db'))}`)
  if (stats && !stats.isFile()) throw wrong(`${file} is not a regular file: give the path of a file`)
  const folder = dirname(path)
  const place = stats ?? look(folder)
  if (!place) throw wrong(`the folder ${JSON.stringify(folder)} does not exist: make it, or give another path`)
  if (!stats && !place.isDirectory()) throw wrong(`${JSON.stringify(folder)} is not a folder: give another path`)
  const type = networkFileSystem(place.dev)
  if (type) {
    const cure = 'give a path on a local disk, or use a store with a server, such as Redis'
    throw wrong(`${file} is on a network file system (${type}), where SQLite's locks cannot be relied on: ${cure}`)
  }
  const problem = accessProblem(path)
  if (problem) throw new LeaseError('STORE_UNAVAILABLE', problem, { retryable: false })
}

/**
 * Creates the file, if it is missing, for this user alone. A user who may read a file of SQLite can also lock it, and so
 * block every writer. SQLite gives the same mode to its -wal and -shm. A file that exists keeps its mode.
 */
export function createPrivate(path: string): void {
  try {
    closeSync(openSync(targetOf(path), 'wx', 0o600))
  } catch {
    // It exists, or SQLite reports what is wrong when it opens it.
  }
}

/** Where SQLite makes the file: it follows a link that leads to none yet, which `wx` refuses. */
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
    throw new LeaseError('STORE_UNAVAILABLE', `${message}: ${cure}`, { cause: error, retryable: false })
  }
}

function prepareFile(database: DatabaseSync, path: string): void {
  // Its own handler sleeps longer and longer, in the main thread: it starved one of two processes for 3 s of 3 s.
  database.exec('pragma busy_timeout = 0')
  database.exec('begin') // one look, or it is half of before and half of after another process has filled the file
  const isReady = checkFormat(database, path) // first, so that nothing is written to another application's database
  database.exec('commit')
  const mode = database.prepare('pragma journal_mode = wal').get()?.journal_mode
  if (mode !== 'wal') {
    const cure = 'give a path on a local disk'
    throw wrong(`the file system of ${JSON.stringify(path)} cannot share memory between processes: ${cure}`)
  }
  // NORMAL may forget the last transactions, and with them tokens, when the power fails.
  database.exec('pragma synchronous = full')
  if (isReady) return
  database.exec('begin immediate')
  if (!checkFormat(database, path)) database.exec(SCHEMA) // several may have found it empty
  database.exec('commit')
}

/** False for a database that is empty still. */
function checkFormat(database: DatabaseSync, path: string): boolean {
  const application = number(database, 'pragma application_id')
  const version = number(database, 'pragma user_version')
  const file = JSON.stringify(path)
  if (application === 0 && version === 0 && number(database, 'select count(*) from sqlite_schema') === 0) return false
  if (application !== APPLICATION_ID)
    throw wrong(`${file} is a database of another application: give the path of a new file`)
  if (version <= FORMAT) return true
  const message = `${file} has format ${version} and this version of Holdfast knows ${FORMAT}: use a newer version`
  throw new LeaseError('STORE_UNAVAILABLE', message, { retryable: false })
}

function number(database: DatabaseSync, sql: string): number {
  return Number(Object.values(database.prepare(sql).get() ?? {})[0])
}

function wrong(message: string): LeaseError {
  return new LeaseError('INVALID_ARGUMENT', message)
}

import { checkText, invalid, show } from '../../contract/check.ts'
import { assertNotEnded, checkFence, type FenceOptions, type Presented, presentedByAll } from '../fence.ts'
import type { Holder, Holders } from '../mark.ts'
import { type KeptMarks, keptMarks } from '../marks.ts'
import type { SqliteDatabase } from './database.ts'
import { failure, IN_TRANSACTION, isBusy } from './failure.ts'
import { isInTransaction, SqliteMarks } from './marks.ts'

export type { FenceOptions } from '../fence.ts'
export type { Holder, Holders, Mark, Marks, Shown } from '../mark.ts'
export type { KeptMarks, MarkRecord } from '../marks.ts'
export type { SqliteDatabase, SqliteStatement } from './database.ts'

export interface SqliteFenceOptions extends FenceOptions {
  /** The table of marks. @default 'holdfast_fence' */
  readonly table?: string | undefined
}

/** Commits the transactions of a holder only as long as the fence has seen no newer one. Only `marks` is asynchronous. */
export interface SqliteFence {
  /**
   * Begins a transaction with the write lock, checks the token of the lease, or of each lease of a set, runs `work`, and
   * commits. `work` must be synchronous. If it throws, nothing was written, unless `work` ended the transaction itself or
   * continues later. It throws the error of `work`, or:
   *
   * - `STALE_TOKEN`: a newer holder was seen.
   * - `LEASE_LOST`, `MAX_HOLD`, `CLOSED`: the lease has ended in this process, also just before the commit.
   * - `STORE_UNAVAILABLE`: another connection kept the file locked for longer than the timeout of the database.
   * - `INVALID_ARGUMENT`: `work` committed or rolled back, so what it wrote after that was not guarded; or it returned a
   *   promise, and what it does after its first `await` is not guarded.
   */
  transaction<Result>(lease: Holder | Holders, work: () => Result): Result
  /** Checks the token in a transaction that you began. Call it first. Roll the transaction back if it throws. */
  check(lease: Holder | Holders): void
  /**
   * Presents the token without writing: every older holder is refused from now on. Call it before you read what you will
   * change. Throws as `transaction` does, and `INVALID_ARGUMENT` in a transaction.
   */
  touch(lease: Holder | Holders): void
  /** The marks of this table. Other fences can keep theirs here. Calls retry for up to 5 s while the file is locked. */
  readonly marks: KeptMarks
  /** Creates the table of marks if it is missing. It may be called repeatedly. */
  install(): void
}

/**
 * A fence for the tables of an SQLite database. `database` is the connection that writes to them: a `DatabaseSync` of
 * node:sqlite, or a `Database` of better-sqlite3. It is neither configured nor closed. The fence needs a table of its own:
 * call `fence.install()`, or run the SQL of `fenceSql()`. Throws `INVALID_ARGUMENT`.
 */
export function sqliteFence(database: SqliteDatabase, options: SqliteFenceOptions = {}): SqliteFence {
  checkFence(options, ['table'], 'sqliteFence')
  const table = tableOf(options.table)
  if (typeof database?.exec !== 'function' || typeof database.prepare !== 'function')
    throw invalid(
      `sqliteFence(database) was given ${show(database)}: pass a DatabaseSync of node:sqlite, or a Database of better-sqlite3`,
    )
  const marks = new SqliteMarks(database, table)
  const raiseAll = (presented: readonly Presented[]): void => {
    for (const each of presented) marks.raiseNow(each)
  }
  /** Begins with the write lock, and commits, or rolls back if the work throws. */
  const inTransaction = <Result>(work: () => Result): Result => {
    marks.translated(() => database.exec('begin immediate'))
    try {
      const result = work()
      commit(database, table)
      return result
    } catch (error) {
      rollBack(database)
      throw error
    }
  }

  return {
    transaction<Result>(lease: Holder | Holders, work: () => Result): Result {
      const presented = presentedByAll(lease, options)
      if (typeof work !== 'function') throw invalid('fence.transaction(lease, work) needs work, a function')
      if (isInTransaction(database)) throw invalid(IN_TRANSACTION)
      return inTransaction(() => {
        raiseAll(presented)
        database.exec('savepoint holdfast')
        const result = work()
        if (typeof (result as { then?: unknown } | undefined)?.then === 'function')
          throw invalid('the work of an SQLite transaction must be synchronous: await before it, not in it')
        assertNotEnded(lease)
        releaseSavepoint(database)
        return result
      })
    },
    check(lease) {
      if (!isInTransaction(database))
        throw invalid('fence.check(lease) needs a transaction: begin one, so that the check and the write are atomic')
      raiseAll(presentedByAll(lease, options))
    },
    touch(lease) {
      const presented = presentedByAll(lease, options)
      if (isInTransaction(database)) throw invalid(IN_TRANSACTION) // a rollback would undo it
      if (presented.length === 1) raiseAll(presented)
      else inTransaction(() => raiseAll(presented))
    },
    marks: keptMarks(marks),
    install: () => void marks.translated(() => database.exec(fenceSql(options))),
  }
}

/** The SQL of `install`, for your own migrations. */
export function fenceSql({ table }: Pick<SqliteFenceOptions, 'table'> = {}): string {
  return `create table if not exists ${tableOf(table)} (
  resource text not null,
  slot text not null default '',
  epoch integer not null default 0 check (epoch >= 0),
  token integer not null check (token >= 0),
  raised_at integer not null default (cast(unixepoch('subsec') * 1000 as integer)),
  primary key (resource, slot)
) strict, without rowid;
`
}

/** Releases the savepoint. It is gone if the transaction has ended, such as by `or rollback` or a full disk. */
function releaseSavepoint(database: SqliteDatabase): void {
  try {
    database.exec('release holdfast')
  } catch (error) {
    if (!/no such savepoint/.test(String(error))) throw error
    throw invalid('the transaction was committed or rolled back before its work ended: what came after is not guarded')
  }
}

function tableOf(table = 'holdfast_fence'): string {
  checkText(table, 'the table')
  if (table === '') throw invalid('the name of the table is empty: give 1 to 255 bytes of text, or leave it out')
  return `"${table.replaceAll('"', '""')}"`
}

/** Commits. Errors caused by the data, such as a deferred foreign key, go to the caller unchanged. */
function commit(database: SqliteDatabase, table: string): void {
  try {
    database.exec('commit')
  } catch (error) {
    throw isBusy(error) ? failure(error, table) : error
  }
}

function rollBack(database: SqliteDatabase): void {
  try {
    database.exec('rollback')
  } catch {
    // Some errors, such as a full disk, have already ended the transaction.
  }
}

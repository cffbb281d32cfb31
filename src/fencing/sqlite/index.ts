import { checkText, invalid, show } from '../../contract/check.ts'
import { LeaseError } from '../../contract/errors.ts'
import { LONGEST_REQUEST } from '../../contract/time.ts'
import {
  assertNotOver,
  checkAge,
  checkFence,
  checkMark,
  checkResource,
  type FenceOptions,
  type KeptMarks,
  type MarkRecord,
  type Showing,
  showingOf,
} from '../fence.ts'
import { type Holder, type Mark, staleToken } from '../mark.ts'
import { failure, isBusy } from './failure.ts'

export type { FenceOptions, KeptMarks, MarkRecord } from '../fence.ts'
export type { Holder, Mark, Marks } from '../mark.ts'

/** What a fence needs of a `DatabaseSync` of node:sqlite, or of a `Database` of better-sqlite3. */
export interface SqliteDatabase {
  exec(sql: string): unknown
  prepare(sql: string): SqliteStatement
}

export interface SqliteStatement {
  run(...parameters: (string | number | bigint)[]): { readonly changes: number | bigint }
  all(...parameters: (string | number | bigint)[]): unknown[]
}

export interface SqliteFenceOptions extends FenceOptions {
  /** The table of marks. @default 'holdfast_fence' */
  readonly table?: string | undefined
}

/** Lets the transactions of a holder in as long as no newer one was seen. All but `marks` is synchronous. */
export interface SqliteFence {
  /**
   * Begins a transaction with the lock to write, shows the token of the lease, runs `work`, and commits. Throws
   * `STALE_TOKEN` if a newer holder was seen; `LEASE_LOST`, `MAX_HOLD` or `CLOSED` if the lease is over in this process,
   * also just before the commit; `STORE_UNAVAILABLE` if others kept the file locked for longer than the
   * database's own time-out; else what the work threw. Nothing is written unless it returns. `work` must be synchronous.
   */
  transaction<Result>(lease: Holder, work: () => Result): Result
  /** The same inside a transaction that you have begun: the first statement in it. If it throws, roll back. */
  check(lease: Holder): void
  /** Shows the token without writing: from here on every older holder is refused. Throws as `transaction` does. */
  touch(lease: Holder): void
  /** The marks themselves, for fences elsewhere that keep theirs here. A locked file is tried again for up to 5 s. */
  readonly marks: KeptMarks
  /** Makes the table of marks if it is missing. It may be called again and again. */
  install(): void
}

/** Milliseconds between two tries for a file that is locked; a timer has steps of 1 ms. */
const PAUSE = 2

/**
 * A fence before the tables of a SQLite database, over the connection that writes to them: a `DatabaseSync` of
 * node:sqlite, or a `Database` of better-sqlite3. Its own table must be there: `fence.install()`, or what
 * `sqliteFenceSql()` answers. The database is neither configured nor closed. Throws `INVALID_ARGUMENT`.
 */
export function sqliteFence(database: SqliteDatabase, options: SqliteFenceOptions = {}): SqliteFence {
  checkFence(options, ['table'], 'sqliteFence')
  const table = tableOf(options.table)
  if (typeof database?.exec !== 'function' || typeof database.prepare !== 'function')
    throw invalid(
      `sqliteFence(database) was given ${show(database)}: pass a DatabaseSync of node:sqlite, or a Database of better-sqlite3`,
    )
  const marks = new SqliteMarks(database, table)
  const check = (lease: Holder): void => marks.show(showingOf(lease, options))

  return {
    transaction<Result>(lease: Holder, work: () => Result): Result {
      const showing = showingOf(lease, options)
      if (typeof work !== 'function') throw invalid('a transaction needs a function that does its work')
      if (isInTransaction(database))
        throw invalid('the database is in a transaction already: use fence.check(lease) in it')
      marks.tell(() => database.exec('begin immediate'))
      try {
        marks.show(showing)
        const result = work()
        if (typeof (result as { then?: unknown } | undefined)?.then === 'function')
          throw invalid('the work of a transaction of SQLite must be synchronous: await before it, not in it')
        assertNotOver(lease)
        commit(database, marks)
        return result
      } catch (error) {
        // Some errors, such as a full disk, have ended the transaction already, and Node 22.13 cannot tell.
        if (isInTransaction(database) !== false) rollBack(database)
        throw error
      }
    },
    check(lease) {
      if (isInTransaction(database) === false)
        throw invalid('the database is in no transaction: a check apart from its write protects nothing; begin one')
      check(lease)
    },
    touch: check,
    marks,
    install: () => void marks.tell(() => database.exec(sqliteFenceSql(options))),
  }
}

/** What `install` carries out, as SQL for migrations of your own. */
export function sqliteFenceSql({ table }: Pick<SqliteFenceOptions, 'table'> = {}): string {
  return `create table if not exists ${tableOf(table)} (
  resource text primary key,
  lineage integer not null default 0 check (lineage >= 0),
  token integer not null check (token >= 0),
  raised_at integer not null default (cast(unixepoch('subsec') * 1000 as integer))
) strict, without rowid;
`
}

/** The marks of one table. */
class SqliteMarks implements KeptMarks {
  readonly #database: SqliteDatabase
  readonly #table: string
  #raise: SqliteStatement | undefined

  constructor(database: SqliteDatabase, table: string) {
    this.#database = database
    this.#table = table
  }

  /** Raises or refuses, as a part of the transaction that there is. */
  show({ resource, mark }: Showing): void {
    const { changes } = this.tell(() => {
      this.#raise ??= this.#database.prepare(
        `insert into ${this.#table} (resource, lineage, token) values (?, ?, ?)
         on conflict (resource) do update
         set lineage = excluded.lineage, token = excluded.token, raised_at = iif(token = excluded.token, raised_at, excluded.raised_at)
         where (lineage, token) <= (excluded.lineage, excluded.token)`,
      )
      return this.#raise.run(resource, mark.lineage, mark.token)
    })
    if (Number(changes) > 0) return
    const [seen] = this.#read('where resource = ?', resource)
    throw staleToken(resource, mark, seen ?? mark)
  }

  async raise(resource: string, mark: Mark, signal?: AbortSignal): Promise<void> {
    checkResource(resource)
    checkMark(mark)
    await this.#patiently(() => this.show({ resource, mark }), signal)
  }

  async list(prefix = ''): Promise<readonly MarkRecord[]> {
    checkText(prefix, 'the prefix')
    return this.#patiently(() => this.#read('where instr(resource, ?) = 1 order by resource', prefix))
  }

  async advance(resource: string): Promise<number | undefined> {
    checkResource(resource)
    const text = `update ${this.#table} set lineage = lineage + 1, token = 0, raised_at = ? where resource = ? returning lineage`
    const [row] = await this.#patiently(() => this.#database.prepare(text).all(Date.now(), resource))
    return row === undefined ? undefined : Number((row as { lineage: number }).lineage)
  }

  async prune(olderThan: number, prefix = ''): Promise<number> {
    checkAge(olderThan)
    checkText(prefix, 'the prefix')
    const text = `delete from ${this.#table} where raised_at < ? and instr(resource, ?) = 1`
    const { changes } = await this.#patiently(() => this.#database.prepare(text).run(Date.now() - olderThan, prefix))
    return Number(changes)
  }

  tell<T>(work: () => T): T {
    try {
      return work()
    } catch (error) {
      throw this.failure(error)
    }
  }

  /** What SQLite failed with, as a `LeaseError`. */
  failure(error: unknown): unknown {
    return failure(error, this.#table)
  }

  #read(condition: string, parameter: string): MarkRecord[] {
    const text = `select resource, lineage, cast(token as text) as token, raised_at as raisedAt from ${this.#table} ${condition}`
    const rows = this.#database.prepare(text).all(parameter) as (Omit<MarkRecord, 'token'> & { token: string })[]
    return rows.map(({ resource, lineage, token, raisedAt }) => ({
      resource,
      lineage: Number(lineage),
      token: BigInt(token),
      raisedAt: Number(raisedAt),
    }))
  }

  async #patiently<T>(work: () => T, signal?: AbortSignal): Promise<T> {
    for (const start = performance.now(); ; ) {
      signal?.throwIfAborted()
      const isLate = performance.now() - start > LONGEST_REQUEST
      try {
        // What is written inside a transaction that is somebody's might be rolled back with it.
        if (!isInTransaction(this.#database)) return work()
        if (isLate) throw new LeaseError('STORE_UNAVAILABLE', 'a transaction of this connection has not ended in time')
      } catch (error) {
        if (isLate || !isBusy(LeaseError.is(error) ? error.cause : error)) throw this.failure(error)
      }
      await new Promise(resolve => setTimeout(resolve, PAUSE))
    }
  }
}

function tableOf(table = 'holdfast_fence'): string {
  checkText(table, 'the table')
  if (table === '') throw invalid('the name of the table is empty')
  return `"${table.replaceAll('"', '""')}"`
}

/** What fails it for reasons of the data, such as a deferred foreign key, is the caller's. */
function commit(database: SqliteDatabase, marks: SqliteMarks): void {
  try {
    database.exec('commit')
  } catch (error) {
    throw isBusy(error) ? marks.failure(error) : error
  }
}

/** `undefined`: this version of the driver cannot tell. */
function isInTransaction(database: SqliteDatabase): boolean | undefined {
  const { isTransaction, inTransaction } = database as { isTransaction?: boolean; inTransaction?: boolean }
  return isTransaction ?? inTransaction
}

function rollBack(database: SqliteDatabase): void {
  try {
    database.exec('rollback')
  } catch {
    // it was over
  }
}

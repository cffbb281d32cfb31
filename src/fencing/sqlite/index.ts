import { checkText, invalid, show } from '../../contract/check.ts'
import { LeaseError } from '../../contract/errors.ts'
import { LONGEST_REQUEST } from '../../contract/time.ts'
import {
  assertNotEnded,
  checkAge,
  checkFence,
  checkMark,
  checkResource,
  type FenceOptions,
  type KeptMarks,
  type MarkRecord,
  type Presented,
  presentedByAll,
} from '../fence.ts'
import { type Holder, type Holders, type Shown, staleToken } from '../mark.ts'
import { comparedKeysOf, judge, keysOf, NAME } from '../rule.ts'
import { failure, isBusy } from './failure.ts'

export type { FenceOptions, KeptMarks, MarkRecord } from '../fence.ts'
export type { Holder, Holders, Mark, Marks, Shown } from '../mark.ts'

/** What a fence needs of a `DatabaseSync` of node:sqlite, or of a `Database` of better-sqlite3. */
export interface SqliteDatabase {
  exec(sql: string): unknown
  prepare(sql: string): SqliteStatement
}

export interface SqliteStatement {
  run(...parameters: (string | number | bigint | null)[]): { readonly changes: number | bigint }
  all(...parameters: (string | number | bigint)[]): unknown[]
}

export interface SqliteFenceOptions extends FenceOptions {
  /** The table of marks. @default 'holdfast_fence' */
  readonly table?: string | undefined
}

/** Commits the transactions of a holder only as long as the fence has seen no newer one. Only `marks` is asynchronous. */
export interface SqliteFence {
  /**
   * Begins a transaction with the write lock, checks the token of the lease, or of each lease of a set, runs `work`, and
   * commits. `work` must be synchronous. If it throws, nothing was written, unless `work` ended the transaction itself. It
   * throws the error of `work`, or:
   *
   * - `STALE_TOKEN`: a newer holder was seen.
   * - `LEASE_LOST`, `MAX_HOLD`, `CLOSED`: the lease has ended in this process, also just before the commit.
   * - `STORE_UNAVAILABLE`: another connection kept the file locked for longer than the timeout of the database.
   * - `INVALID_ARGUMENT`: `work` committed or rolled back, so what it wrote after that was not guarded; or it returned a
   *   promise.
   */
  transaction<Result>(lease: Holder | Holders, work: () => Result): Result
  /** The check for a transaction that you began: call it first. Roll the transaction back if it throws. */
  check(lease: Holder | Holders): void
  /**
   * Shows the token without writing: every older holder is refused from now on. Call it before you read what you will
   * change. Throws as `transaction` does.
   */
  touch(lease: Holder | Holders): void
  /** The marks of this table. Other fences can keep theirs here. Calls retry for up to 5 s while the file is locked. */
  readonly marks: KeptMarks
  /** Creates the table of marks if it is missing. It may be called repeatedly. */
  install(): void
}

/** Milliseconds between two attempts while the file is locked. Timers have a resolution of 1 ms. */
const PAUSE = 2

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
      commit(database, marks)
      return result
    } catch (error) {
      // Some errors, such as a full disk, have already ended the transaction. Node 22.13 does not report this.
      if (isInTransaction(database) !== false) rollBack(database)
      throw error
    }
  }

  return {
    transaction<Result>(lease: Holder | Holders, work: () => Result): Result {
      const presented = presentedByAll(lease, options)
      if (typeof work !== 'function') throw invalid('fence.transaction(lease, work) needs work, a function')
      if (isInTransaction(database))
        throw invalid('the database is already in a transaction: use fence.check(lease) in it')
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
      if (isInTransaction(database) === false)
        throw invalid('fence.check(lease) needs a transaction: begin one, so that the check and the write are atomic')
      raiseAll(presentedByAll(lease, options))
    },
    touch(lease) {
      const presented = presentedByAll(lease, options)
      if (presented.length === 1 || isInTransaction(database)) raiseAll(presented)
      else inTransaction(() => raiseAll(presented))
    },
    marks,
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

/** The columns of a row, which `returnArrays` of node:sqlite makes a list. */
function valuesOf(row: unknown): readonly unknown[] {
  return Array.isArray(row) ? row : Object.values(row as object)
}

/** A savepoint ends with its transaction, whoever ended that: also a statement with `or rollback`, or a full disk. */
function releaseSavepoint(database: SqliteDatabase): void {
  try {
    database.exec('release holdfast')
  } catch (error) {
    if (!/no such savepoint/.test(String(error))) throw error
    throw invalid('the transaction was committed or rolled back before its work ended: what came after is not guarded')
  }
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

  /** Raises the marks or refuses, in the current transaction if there is one. One statement, so it is atomic without. */
  raiseNow({ resource, mark }: Presented): void {
    const compared = comparedKeysOf(mark)
    const raised = compared ? [NAME, ...keysOf(mark)] : keysOf(mark)
    const isHigher = '(mark.epoch, mark.token) < (excluded.epoch, excluded.token)'
    const { changes } = this.translated(() => {
      this.#raise ??= this.#database.prepare(
        `with shown (resource, epoch, token, raised, compared) as (values (?, ?, ?, ?, ?))
         insert into ${this.#table} as mark (resource, slot, epoch, token)
         select resource, value, epoch, iif(value = '' and compared is not null, 0, token) from shown, json_each(shown.raised)
         where not exists (
           select 1 from ${this.#table} as seen
           where seen.resource = shown.resource and (seen.epoch, seen.token) > (shown.epoch, shown.token)
           and (compared is null or seen.slot in (select value from json_each(shown.compared))))
         on conflict (resource, slot) do update set
           epoch = iif(${isHigher}, excluded.epoch, epoch), token = iif(${isHigher}, excluded.token, token),
           raised_at = iif(${isHigher}, excluded.raised_at, raised_at)`,
      )
      const { epoch, token } = mark
      return this.#raise.run(resource, epoch, token, JSON.stringify(raised), compared ? JSON.stringify(compared) : null)
    })
    if (Number(changes) > 0) return
    const marks = new Map(this.#read('where resource = ?', resource).map(seen => [seen.slot ?? NAME, seen]))
    const judged = judge(marks, mark)
    throw staleToken(resource, mark, 'highest' in judged ? judged.highest : mark)
  }

  async raise(resource: string, mark: Shown, signal?: AbortSignal): Promise<void> {
    checkResource(resource)
    checkMark(mark)
    await this.#whenUnlocked(() => this.raiseNow({ resource, mark }), signal)
  }

  async list(prefix = ''): Promise<readonly MarkRecord[]> {
    checkText(prefix, 'the prefix')
    return this.#whenUnlocked(() => this.#read('where instr(resource, ?) = 1 order by resource, slot', prefix))
  }

  async advance(resource: string): Promise<number | undefined> {
    checkResource(resource)
    const text = `update ${this.#table} as mark set token = 0, raised_at = ?,
      epoch = 1 + (select max(epoch) from ${this.#table} as seen where seen.resource = mark.resource)
      where resource = ? and slot = '' returning epoch`
    const [row] = await this.#whenUnlocked(() => this.#database.prepare(text).all(Date.now(), resource))
    return row === undefined ? undefined : Number(valuesOf(row)[0])
  }

  async prune(olderThan: number, prefix = ''): Promise<number> {
    checkAge(olderThan)
    checkText(prefix, 'the prefix')
    const text = `delete from ${this.#table} where resource in (
      select resource from ${this.#table} where instr(resource, ?) = 1 group by resource having max(raised_at) < ?)`
    const { changes } = await this.#whenUnlocked(() => this.#database.prepare(text).run(prefix, Date.now() - olderThan))
    return Number(changes)
  }

  translated<T>(work: () => T): T {
    try {
      return work()
    } catch (error) {
      throw this.failure(error)
    }
  }

  /** An error of SQLite as a `LeaseError`. */
  failure(error: unknown): unknown {
    return failure(error, this.#table)
  }

  #read(condition: string, parameter: string): MarkRecord[] {
    const text = `select resource, slot, epoch, cast(token as text) as token, raised_at as raisedAt from ${this.#table} ${condition}`
    const rows = this.#database.prepare(text).all(parameter).map(valuesOf)
    return rows.map(([resource, slot, epoch, token, raisedAt]) => ({
      resource: String(resource),
      ...(slot !== NAME && { slot: String(slot) }),
      epoch: Number(epoch),
      token: BigInt(String(token)),
      raisedAt: Number(raisedAt),
    }))
  }

  async #whenUnlocked<T>(work: () => T, signal?: AbortSignal): Promise<T> {
    for (const start = performance.now(); ; ) {
      signal?.throwIfAborted()
      const isLate = performance.now() - start > LONGEST_REQUEST
      try {
        // A write in the caller's transaction could be rolled back with it.
        if (!isInTransaction(this.#database)) return work()
        if (isLate)
          throw new LeaseError(
            'STORE_UNAVAILABLE',
            `a transaction of this connection was open for ${LONGEST_REQUEST} ms: commit it first`,
          )
      } catch (error) {
        if (isLate || !isBusy(LeaseError.is(error) ? error.cause : error)) throw this.failure(error)
      }
      await new Promise(resolve => setTimeout(resolve, PAUSE))
    }
  }
}

function tableOf(table = 'holdfast_fence'): string {
  checkText(table, 'the table')
  if (table === '') throw invalid('the name of the table is empty: give 1 to 255 bytes of text, or leave it out')
  return `"${table.replaceAll('"', '""')}"`
}

/** Errors caused by the data, such as a deferred foreign key, go to the caller unchanged. */
function commit(database: SqliteDatabase, marks: SqliteMarks): void {
  try {
    database.exec('commit')
  } catch (error) {
    throw isBusy(error) ? marks.failure(error) : error
  }
}

/** `undefined`: this version of the driver does not report it. */
function isInTransaction(database: SqliteDatabase): boolean | undefined {
  const { isTransaction, inTransaction } = database as { isTransaction?: boolean; inTransaction?: boolean }
  return isTransaction ?? inTransaction
}

function rollBack(database: SqliteDatabase): void {
  try {
    database.exec('rollback')
  } catch {
    // it had already ended
  }
}

import { LeaseError } from '../../contract/errors.ts'
import { LONGEST_REQUEST } from '../../contract/time.ts'
import type { Presented } from '../fence.ts'
import { staleToken } from '../mark.ts'
import { type MarkRecord, type MarkTable, recordOf } from '../marks.ts'
import { comparedKeysOf, judge, keysOf, NAME } from '../rule.ts'
import type { SqliteDatabase, SqliteStatement } from './database.ts'
import { failure } from './failure.ts'
import { whenUnlocked } from './unlocked.ts'

/** The marks of one table. */
export class SqliteMarks implements MarkTable {
  readonly #database: SqliteDatabase
  readonly #table: string
  #raise: SqliteStatement | undefined

  /** `table`: the quoted name of the table. */
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

  async raise(presented: readonly Presented[], signal?: AbortSignal): Promise<void> {
    for (const each of presented) await this.#whenUnlocked(() => this.raiseNow(each), signal)
  }

  list(prefix: string): Promise<readonly MarkRecord[]> {
    return this.#whenUnlocked(() => this.#read('where instr(resource, ?) = 1 order by resource, slot', prefix))
  }

  async advance(resource: string): Promise<number | undefined> {
    const text = `update ${this.#table} as mark set token = 0, raised_at = ?,
      epoch = 1 + (select max(epoch) from ${this.#table} as seen where seen.resource = mark.resource)
      where resource = ? and slot = '' returning epoch`
    const [row] = await this.#whenUnlocked(() => this.#database.prepare(text).all(Date.now(), resource))
    return row === undefined ? undefined : Number(valuesOf(row)[0])
  }

  async prune(olderThan: number, prefix: string): Promise<number> {
    const text = `delete from ${this.#table} where resource in (
      select resource from ${this.#table} where instr(resource, ?) = 1 group by resource having max(raised_at) < ?)`
    const { changes } = await this.#whenUnlocked(() => this.#database.prepare(text).run(prefix, Date.now() - olderThan))
    return Number(changes)
  }

  /** Runs `work`. Errors of SQLite become `LeaseError`s. */
  translated<T>(work: () => T): T {
    try {
      return work()
    } catch (error) {
      throw failure(error, this.#table)
    }
  }

  #read(condition: string, parameter: string): MarkRecord[] {
    const text = `select resource, slot, epoch, cast(token as text), raised_at from ${this.#table} ${condition}`
    return this.#database.prepare(text).all(parameter).map(valuesOf).map(recordOf)
  }

  #whenUnlocked<T>(work: () => T, signal?: AbortSignal): Promise<T> {
    const use = (): T => {
      // A write in the caller's transaction could be rolled back with it.
      if (!isInTransaction(this.#database)) return this.translated(work)
      const cure = `was open for ${LONGEST_REQUEST} ms: commit it first`
      throw new LeaseError('STORE_UNAVAILABLE', `a transaction of this connection ${cure}`, { cause: OPEN })
    }
    return whenUnlocked(use, LONGEST_REQUEST, signal)
  }
}

/** The error that SQLite would report if another connection had begun the transaction. */
const OPEN = Object.assign(new Error('database is locked'), { code: 'SQLITE_BUSY' })

/** Is a transaction open? Node before 22.16 does not report it, but refuses a second `begin`. */
export function isInTransaction(database: SqliteDatabase): boolean {
  const { isTransaction, inTransaction } = database as { isTransaction?: boolean; inTransaction?: boolean }
  const reported = isTransaction ?? inTransaction
  if (reported !== undefined) return reported
  try {
    database.exec('begin')
  } catch (error) {
    if (/within a transaction/.test(String(error))) return true
    throw error
  }
  database.exec('rollback')
  return false
}

/** The columns of a row, which `returnArrays` of node:sqlite makes a list. */
function valuesOf(row: unknown): readonly unknown[] {
  return Array.isArray(row) ? row : Object.values(row as object)
}

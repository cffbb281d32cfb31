import { request } from '../../contract/request.ts'
import { LONGEST_REQUEST, systemClock } from '../../contract/time.ts'
import { serialized } from '../../stores/postgres/migrate.ts'
import { literal } from '../../stores/postgres/sql.ts'
import type { Presented } from '../fence.ts'
import { type MarkRecord, recordOf } from '../marks.ts'
import type { FenceEngine } from '../transaction.ts'
import { ask } from './client.ts'
import { type Connector, INSIDE, outside } from './connector.ts'
import { failure, isDeadlock, isOldSnapshot, isUnknown, refusalOf } from './failure.ts'
import type { FenceNames } from './names.ts'
import { marksSql, raiseSql } from './sql.ts'

/**
 * The fence of one table. Each call outside of a transaction is one statement with a limit of 5 s. The statements name
 * only functions and operators of `pg_catalog`, because a role that may create objects in a schema of the search path
 * could shadow others.
 */
export class PostgresEngine<Transaction> implements FenceEngine<Transaction> {
  readonly #connector: Connector
  readonly #names: FenceNames
  /** The statement that begins each transaction. */
  readonly #first: string

  constructor(connector: Connector, names: FenceNames, maxIdle: number | undefined) {
    this.#connector = connector
    this.#names = names
    this.#first = maxIdle === undefined ? '' : `set local idle_in_transaction_session_timeout = ${maxIdle}; `
  }

  /**
   * Retries a transaction that fails before the work. Transactions that call check() several times may mark in another
   * order. And above `read committed` the snapshot is older than what this one waited for. Once the token was presented,
   * no older holder changes marks any more.
   */
  async transaction<Result>(
    presented: readonly Presented[],
    work: (transaction: Transaction) => Promise<Result>,
  ): Promise<Result> {
    const first = this.#first + raiseSql(this.#names, presented)
    const { marks } = this.#names
    for (const until = performance.now() + LONGEST_REQUEST; ; ) {
      let phase = 'opening' as 'opening' | 'work' | 'commit'
      let result: Result | undefined
      const attempt = async (transaction: unknown): Promise<void> => {
        phase = 'work'
        result = await work(transaction as Transaction)
        phase = 'commit'
      }
      try {
        await this.#connector.transaction(first, attempt, until - performance.now())
        return result as Result
      } catch (error) {
        const isLost = phase === 'commit' && isUnknown(error)
        if (phase !== 'opening') throw refusalOf(error) ?? (isLost ? failure(error, marks, true) : error)
        if (performance.now() >= until || !(isDeadlock(error) || isOldSnapshot(error)))
          throw failure(error, marks, false)
        if (isOldSnapshot(error)) await this.raise(presented)
      }
    }
  }

  async check(presented: readonly Presented[], transaction: unknown): Promise<void> {
    await ask(transaction, INSIDE + raiseSql(this.#names, presented)).catch((error: unknown) => {
      throw failure(outside(error), this.#names.marks, false)
    })
  }

  async raise(presented: readonly Presented[]): Promise<void> {
    // The row it waits for may be newer than a snapshot at the session's isolation level.
    await this.#ask(`set transaction isolation level read committed; ${raiseSql(this.#names, presented)}`)
  }

  async list(prefix: string): Promise<readonly MarkRecord[]> {
    const rows = await this.#ask(
      `select resource, slot, epoch, token::pg_catalog.text,
         pg_catalog.floor(extract(epoch from raised_at) operator(pg_catalog.*) 1000)
       from ${this.#names.marks}
       where pg_catalog.starts_with(resource, ${literal(prefix)}) order by resource, slot`,
    )
    return rows.map(recordOf)
  }

  async advance(resource: string): Promise<number | undefined> {
    const { marks } = this.#names
    const isOfResource = `resource operator(pg_catalog.=) ${literal(resource)}`
    const [row] = await this.#ask(
      `update ${marks} set token = 0, raised_at = pg_catalog.clock_timestamp(), epoch = greatest(epoch,
         (select pg_catalog.max(epoch) from ${marks} where ${isOfResource})) operator(pg_catalog.+) 1
       where ${isOfResource} and slot operator(pg_catalog.=) '' returning epoch`,
    )
    return row && Number(row[0])
  }

  async prune(olderThan: number, prefix: string): Promise<number> {
    const { marks } = this.#names
    const limit = `(pg_catalog.clock_timestamp() operator(pg_catalog.-) interval '${olderThan} milliseconds')`
    const rows = await this.#ask(
      `delete from ${marks} as mark
       where raised_at operator(pg_catalog.<) ${limit} and pg_catalog.starts_with(resource, ${literal(prefix)})
       and not exists (select from ${marks} as other where other.resource operator(pg_catalog.=) mark.resource
         and other.raised_at operator(pg_catalog.>=) ${limit}) returning 1`,
    )
    return rows.length
  }

  async install(): Promise<void> {
    await this.#ask(serialized(marksSql(this.#names)))
  }

  /** Sends one statement, or several whose rows do not matter. */
  #ask(text: string): Promise<unknown[][]> {
    return request(systemClock(), LONGEST_REQUEST, () =>
      this.#connector.query(text).catch((error: unknown) => {
        throw failure(error, this.#names.marks, true)
      }),
    )
  }
}

import { invalid } from '../../contract/check.ts'
import { LeaseError } from '../../contract/errors.ts'
import { numberOf } from '../../stores/mysql/failure.ts'
import { hex, TIME } from '../../stores/mysql/sql.ts'
import type { Presented } from '../fence.ts'
import { staleToken } from '../mark.ts'
import { type MarkRecord, recordOf } from '../marks.ts'
import { isAlone, isReader, keysOf, NAME } from '../rule.ts'
import type { FenceEngine } from '../transaction.ts'
import { type Client, connectionOf, IN_TRANSACTION, type PromisedClient, type Report } from './client.ts'
import { failure } from './failure.ts'
import { Sessions, send } from './sessions.ts'
import {
  compareNameSql,
  highestSql,
  isSharedSql,
  knownSql,
  makeSql,
  marksSql,
  raiseSql,
  STALE,
  shareSql,
  slotsSql,
} from './sql.ts'

/** The fence of one table. Each call outside of a transaction is limited to 5 s. */
export class MysqlEngine<Transaction> implements FenceEngine<Transaction> {
  readonly #sessions: Sessions
  readonly #table: string

  /** `promised`: the client with promises. */
  constructor(promised: PromisedClient, table: string) {
    this.#sessions = new Sessions(promised, table)
    this.#table = table
  }

  transaction<Result>(
    presented: readonly Presented[],
    work: (transaction: Transaction) => Promise<Result>,
  ): Promise<Result> {
    return this.#sessions.transaction(
      connection => this.#raise(connection, presented),
      connection => work(connection as Transaction),
    )
  }

  async check(presented: readonly Presented[], transaction: unknown): Promise<void> {
    const { serverStatus } = await this.#raise(connectionOf(transaction), presented)
    if (!(serverStatus & IN_TRANSACTION))
      throw invalid('this connection is in no transaction, so the fence guards nothing: begin one first')
  }

  async raise(presented: readonly Presented[]): Promise<void> {
    await this.#sessions.alone(connection => this.#raise(connection, presented))
  }

  async list(prefix: string): Promise<readonly MarkRecord[]> {
    const rows = await this.#ask(
      `select resource, slot, epoch, cast(token as char), raised_at div 1000 from ${this.#table}
       where ${begins('resource', prefix)} order by resource, slot`,
    )
    return (rows as unknown[][]).map(recordOf)
  }

  async advance(resource: string): Promise<number | undefined> {
    const isOfResource = `resource = ${hex(resource)}`
    const [highest] = (await this.#ask(`select max(epoch) from ${this.#table} where ${isOfResource}`)) as [unknown][]
    const report = (await this.#ask(
      `update ${this.#table} set epoch = last_insert_id(greatest(epoch, ${Number(highest?.[0] ?? 0)}) + 1), token = 0,
       raised_at = ${TIME} where ${isOfResource} and slot = ${hex(NAME)}`,
    )) as Report
    return report.affectedRows > 0 ? report.insertId : undefined
  }

  async prune(olderThan: number, prefix: string): Promise<number> {
    const pruned = await this.#ask(
      `delete mark from ${this.#table} as mark left join ${this.#table} as newer
       on newer.resource = mark.resource and newer.raised_at >= ${TIME} - ${olderThan * 1_000}
       where newer.resource is null and ${begins('mark.resource', prefix)}`,
    )
    return (pruned as Report).affectedRows
  }

  async install(): Promise<void> {
    await this.#ask(marksSql(this.#table))
  }

  /** Sends a statement that is committed by itself. */
  #ask(sql: string): Promise<unknown> {
    return this.#sessions.alone(connection => send(connection, sql))
  }

  /**
   * Raises these marks over this connection. Resolves to the server's report about the first statement. Above
   * `read committed` the first plain read decides what the work sees. Only readers have one, so they come last: by then all
   * that the holders exclude has been waited for.
   */
  async #raise(connection: Client, presented: readonly Presented[]): Promise<Report> {
    const alone = presented.filter(({ mark }) => isAlone(mark))
    const readers = presented.filter(({ mark }) => isReader(mark))
    const permits = presented.filter(({ mark }) => !isAlone(mark) && !isReader(mark))
    const reports: unknown[] = []
    try {
      for (const sql of raiseSql(this.#table, alone)) reports.push(await send(connection, sql))
      for (const each of presented) if (!isAlone(each.mark)) reports.push(await this.#share(connection, each))
      for (const each of [...permits, ...readers]) await this.#raiseSlots(connection, each)
      return reports[0] as Report
    } catch (error) {
      if (numberOf(error) !== STALE) throw failure(error, this.#table, true)
    }
    return this.#refuse(connection, presented)
  }

  /**
   * Locks the mark of the name. This and `#raiseSlots` do what the statements of `raiseSql` do, but permits do not wait for
   * each other here.
   */
  async #share(connection: Client, each: Presented): Promise<unknown> {
    const report = await send(connection, makeSql(this.#table, each))
    const shared = await send(connection, isSharedSql(this.#table, each))
    if ((shared as unknown[]).length === 0) await send(connection, shareSql(this.#table, each))
    return report
  }

  async #raiseSlots(connection: Client, each: Presented): Promise<void> {
    const known = isReader(each.mark) ? ((await send(connection, knownSql(this.#table, each))) as unknown[]).length : 0
    if (known < keysOf(each.mark).length) await send(connection, slotsSql(this.#table, each))
    await send(connection, compareNameSql(this.#table, each))
  }

  /** Rejects `STALE_TOKEN` with the highest mark. The row is locked by now, so it shows what a snapshot may not. */
  async #refuse(connection: Client, presented: readonly Presented[]): Promise<never> {
    for (const each of presented) {
      const rows = await send(connection, highestSql(this.#table, each)).catch(error => {
        throw failure(error, this.#table, true)
      })
      const [seen] = rows as [number, string][]
      if (seen) throw staleToken(each.resource, each.mark, { epoch: Number(seen[0]), token: BigInt(seen[1]) })
    }
    throw new LeaseError(
      'STORE_UNAVAILABLE',
      'a mark that refused a token was changed meanwhile: repeat the transaction',
    )
  }
}

function begins(column: string, prefix: string): string {
  return `left(${column}, ${Buffer.byteLength(prefix)}) = ${hex(prefix)}`
}

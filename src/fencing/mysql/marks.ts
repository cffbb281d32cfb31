import { checkText, invalid } from '../../contract/check.ts'
import { LeaseError, type LeaseErrorCode } from '../../contract/errors.ts'
import { request } from '../../contract/request.ts'
import { LONGEST_REQUEST, systemClock } from '../../contract/time.ts'
import { numberOf, failure as storeFailure } from '../../stores/mysql/failure.ts'
import { hex, TIME } from '../../stores/mysql/sql.ts'
import {
  abortable,
  checkAge,
  checkMark,
  checkResource,
  type KeptMarks,
  type MarkRecord,
  type Presented,
} from '../fence.ts'
import { type Shown, staleToken } from '../mark.ts'
import { isAlone, isReader, keysOf, NAME } from '../rule.ts'
import {
  AUTOCOMMIT,
  type Client,
  COMMIT,
  IN_TRANSACTION,
  type PromisedClient,
  type Report,
  ROLLBACK,
  ROWS,
} from './client.ts'
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

/** The marks of one table. Each call is limited to 5 s. */
export class MysqlMarks implements KeptMarks {
  readonly #client: PromisedClient
  readonly #table: string

  constructor(client: PromisedClient, table: string) {
    this.#client = client
    this.#table = table
  }

  async raise(resource: string, mark: Shown, signal?: AbortSignal): Promise<void> {
    checkResource(resource)
    checkMark(mark)
    await this.touch([{ resource, mark }], signal)
  }

  async list(prefix = ''): Promise<readonly MarkRecord[]> {
    checkText(prefix, 'the prefix')
    const rows = await this.#alone(
      `select resource, slot, epoch, cast(token as char), raised_at from ${this.#table} where ${begins('resource', prefix)} order by resource, slot`,
    )
    return (rows as unknown[][]).map(([resource, slot, epoch, token, raisedAt]) => ({
      resource: String(resource),
      ...(String(slot) !== NAME && { slot: String(slot) }),
      epoch: Number(epoch),
      token: BigInt(String(token)),
      raisedAt: Math.floor(Number(raisedAt) / 1_000),
    }))
  }

  async advance(resource: string): Promise<number | undefined> {
    checkResource(resource)
    const isOfResource = `resource = ${hex(resource)}`
    const [highest] = (await this.#alone(`select max(epoch) from ${this.#table} where ${isOfResource}`)) as [unknown][]
    const report = (await this.#alone(
      `update ${this.#table} set epoch = last_insert_id(greatest(epoch, ${Number(highest?.[0] ?? 0)}) + 1), token = 0,
       raised_at = ${TIME} where ${isOfResource} and slot = ${hex(NAME)}`,
    )) as Report
    return report.affectedRows > 0 ? report.insertId : undefined
  }

  async prune(olderThan: number, prefix = ''): Promise<number> {
    checkAge(olderThan)
    checkText(prefix, 'the prefix')
    const pruned = await this.#alone(
      `delete mark from ${this.#table} as mark left join ${this.#table} as newer
       on newer.resource = mark.resource and newer.raised_at >= ${TIME} - ${olderThan * 1_000}
       where newer.resource is null and ${begins('mark.resource', prefix)}`,
    )
    return (pruned as Report).affectedRows
  }

  async install(): Promise<void> {
    await this.#alone(marksSql(this.#table))
  }

  /** Advances these marks for good, or none. Rejects as `show` does. */
  async touch(presented: readonly Presented[], signal?: AbortSignal): Promise<void> {
    await this.#alone(connection => this.show(connection, presented), signal)
  }

  /** Advances these marks over this connection. Rejects `STALE_TOKEN` if a higher token was shown. */
  async show(connection: Client, presented: readonly Presented[]): Promise<Report> {
    const alone = presented.filter(({ mark }) => isAlone(mark))
    let report: Report | undefined
    try {
      for (const sql of raiseSql(this.#table, alone)) {
        const answer = await send(connection, sql)
        report ??= answer as Report
      }
      for (const each of presented) {
        if (isAlone(each.mark)) continue
        const answer = await this.#share(connection, each)
        report ??= answer
      }
      return report as Report
    } catch (error) {
      if (numberOf(error) !== STALE) throw this.failure(error, true)
    }
    // A transaction has locked the row by now, and the lock shows what a snapshot may not.
    for (const each of presented) {
      const [seen] = (await this.#ask(connection, highestSql(this.#table, each))) as [number, string][]
      if (seen) throw staleToken(each.resource, each.mark, { epoch: Number(seen[0]), token: BigInt(seen[1]) })
    }
    throw new LeaseError(
      'STORE_UNAVAILABLE',
      'a mark that refused a token was changed meanwhile: repeat the transaction',
    )
  }

  /** As the statements of `raiseSql`, but permits do not wait for each other at the mark of the name. */
  async #share(connection: Client, each: Presented): Promise<Report> {
    const ask = async (sql: (table: string, each: Presented) => string): Promise<unknown> =>
      send(connection, sql(this.#table, each))
    const report = (await ask(makeSql)) as Report
    if (isEmpty(await ask(isSharedSql))) await ask(shareSql)
    const known = isReader(each.mark) ? ((await ask(knownSql)) as unknown[]).length : 0
    if (known < keysOf(each.mark).length) await ask(slotsSql)
    await ask(compareNameSql)
    return report
  }

  /** The error that a caller sees. `sent`: may the statement have been carried out? */
  failure(error: unknown, sent: boolean): LeaseError {
    const says = (code: LeaseErrorCode, text: string): LeaseError =>
      new LeaseError(code, `${text} (${(error as Error).message})`, { cause: storeFailure(error, sent).cause })
    switch (LeaseError.is(error) ? 0 : numberOf(error)) {
      case 1146:
        return says(
          'NOT_MIGRATED',
          `the table ${this.#table} is missing: run holdfast migrate --fence or what holdfast fence sql prints, or call fence.install()`,
        )
      case 1054:
        return says(
          'FORMAT_MISMATCH',
          `the table ${this.#table} has other columns: use the same version of Holdfast everywhere, or give the option table`,
        )
      case 1142:
        return says(
          'ACCESS_DENIED',
          `this user needs select, insert and update on ${this.#table}, and delete to prune marks`,
        )
      case 1205:
        return says(
          'STORE_UNAVAILABLE',
          'the mark is locked by a transaction of another holder, or by a backup: if that hangs, end its session',
        )
      case 1020: // MariaDB with innodb_snapshot_isolation
      case 1213:
        return says(
          'STORE_UNAVAILABLE',
          'another transaction was in the way: roll back, and repeat this one as a whole',
        )
      default:
        return storeFailure(error, sent)
    }
  }

  /**
   * A statement, or some work, that is committed by itself: also where the sessions of a pool have no autocommit. Limited to
   * 5 s.
   */
  async #alone(what: string | ((connection: Client) => Promise<Report>), signal?: AbortSignal): Promise<unknown> {
    signal?.throwIfAborted()
    const alone = request(systemClock(), LONGEST_REQUEST, async late => {
      const lent = await this.#client.getConnection?.().catch(error => Promise.reject(this.failure(error, false)))
      const connection = lent ?? this.#client
      try {
        late.throwIfAborted()
        const answer = await (typeof what === 'string' ? this.#ask(connection, what) : what(connection))
        const isOpen = isReport(answer) && answer.serverStatus & IN_TRANSACTION
        if (isOpen && (!lent || answer.serverStatus & AUTOCOMMIT))
          throw invalid('this connection is in a transaction, so the mark is not committed: use fence.check, or a pool')
        if (lent && (isOpen || !isReport(answer))) await this.#ask(connection, COMMIT)
        return answer
      } catch (error) {
        if (LeaseError.is(error, 'OUTCOME_UNKNOWN')) lent?.destroy?.()
        else if (lent) await lent.query({ sql: ROLLBACK }).catch(() => {})
        throw error
      } finally {
        lent?.release?.()
      }
    })
    return abortable(alone, signal)
  }

  async #ask(connection: Client, sql: string): Promise<unknown> {
    try {
      return await send(connection, sql)
    } catch (error) {
      throw this.failure(error, true)
    }
  }
}

const isEmpty = (rows: unknown): boolean => (rows as unknown[]).length === 0

const isReport = (answer: unknown): answer is Report => !Array.isArray(answer)

/** One statement, limited to 5 s. Resolves to its rows as lists, or to what the server reports. */
async function send(connection: Client, sql: string): Promise<unknown> {
  let failed: unknown
  const sent = request(systemClock(), LONGEST_REQUEST, async () => {
    try {
      return (await connection.query({ sql, ...ROWS }))[0]
    } catch (error) {
      failed = error
      throw error
    }
  })
  try {
    return await sent
  } catch (error) {
    throw failed ?? error
  }
}

function begins(column: string, prefix: string): string {
  return `left(${column}, ${Buffer.byteLength(prefix)}) = ${hex(prefix)}`
}

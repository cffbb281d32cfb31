import { checkText, invalid } from '../../contract/check.ts'
import { LeaseError } from '../../contract/errors.ts'
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
import { compareMarks, type Mark, staleToken } from '../mark.ts'
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
import { marksSql, raiseSql, STALE } from './sql.ts'

/** The marks of one table. Each call is limited to 5 s. */
export class MysqlMarks implements KeptMarks {
  readonly #client: PromisedClient
  readonly #table: string

  constructor(client: PromisedClient, table: string) {
    this.#client = client
    this.#table = table
  }

  async raise(resource: string, mark: Mark, signal?: AbortSignal): Promise<void> {
    checkResource(resource)
    checkMark(mark)
    await this.touch([{ resource, mark }], signal)
  }

  async list(prefix = ''): Promise<readonly MarkRecord[]> {
    checkText(prefix, 'the prefix')
    const rows = await this.#alone(
      `select resource, epoch, cast(token as char), raised_at from ${this.#table} where ${begins(prefix)} order by resource`,
    )
    return (rows as unknown[][]).map(([resource, epoch, token, raisedAt]) => ({
      resource: String(resource),
      epoch: Number(epoch),
      token: BigInt(String(token)),
      raisedAt: Math.floor(Number(raisedAt) / 1_000),
    }))
  }

  async advance(resource: string): Promise<number | undefined> {
    checkResource(resource)
    const report = (await this.#alone(
      `update ${this.#table} set epoch = last_insert_id(epoch + 1), token = 0, raised_at = ${TIME} where resource = ${hex(resource)}`,
    )) as Report
    return report.affectedRows > 0 ? report.insertId : undefined
  }

  async prune(olderThan: number, prefix = ''): Promise<number> {
    checkAge(olderThan)
    checkText(prefix, 'the prefix')
    const isOld = `raised_at < ${TIME} - ${olderThan * 1_000}`
    const pruned = await this.#alone(`delete from ${this.#table} where ${isOld} and ${begins(prefix)}`)
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
    try {
      return (await send(connection, raiseSql(this.#table, presented))) as Report
    } catch (error) {
      if (numberOf(error) !== STALE) throw this.failure(error, true)
    }
    // A transaction has locked the row by now, and the lock shows what a snapshot may not.
    for (const { resource, mark } of presented) {
      const row = `select epoch, cast(token as char) from ${this.#table} where resource = ${hex(resource)}`
      const [seen] = (await this.#ask(connection, `${row} lock in share mode`)) as [number, string][]
      const highest = seen ? { epoch: Number(seen[0]), token: BigInt(seen[1]) } : mark
      if (presented.length === 1 || compareMarks(mark, highest) < 0) throw staleToken(resource, mark, highest)
    }
    throw new LeaseError(
      'STORE_UNAVAILABLE',
      'a mark that refused a token was changed meanwhile: repeat the transaction',
    )
  }

  /** The error that a caller sees. `sent`: may the statement have been carried out? */
  failure(error: unknown, sent: boolean): LeaseError {
    const says = (code: 'INVALID_ARGUMENT' | 'STORE_UNAVAILABLE', text: string): LeaseError =>
      new LeaseError(code, `${text} (${(error as Error).message})`, { cause: storeFailure(error, sent).cause })
    switch (LeaseError.is(error) ? 0 : numberOf(error)) {
      case 1146:
        return says(
          'INVALID_ARGUMENT',
          `the table ${this.#table} is missing: carry out what holdfast fence sql prints, or fence.install()`,
        )
      case 1142:
        return says(
          'INVALID_ARGUMENT',
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

function begins(prefix: string): string {
  return `left(resource, ${Buffer.byteLength(prefix)}) = ${hex(prefix)}`
}

import { checkText } from '../../contract/check.ts'
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
import { type Mark, staleToken } from '../mark.ts'
import type { Client, Report } from './client.ts'
import { marksSql, raiseSql, STALE } from './sql.ts'

/** The marks of one table. Each call is limited to 5 s. */
export class MysqlMarks implements KeptMarks {
  readonly #client: Client
  readonly #table: string

  constructor(client: Client, table: string) {
    this.#client = client
    this.#table = table
  }

  async raise(resource: string, mark: Mark, signal?: AbortSignal): Promise<void> {
    checkResource(resource)
    checkMark(mark)
    await this.show(this.#client, { resource, mark }, signal)
  }

  async list(prefix = ''): Promise<readonly MarkRecord[]> {
    checkText(prefix, 'the prefix')
    const rows = await this.#ask(
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
    const where = `where resource = ${hex(resource)}`
    await this.#ask(`update ${this.#table} set epoch = epoch + 1, token = 0, raised_at = ${TIME} ${where}`)
    const [row] = (await this.#ask(`select epoch from ${this.#table} ${where}`)) as unknown[][]
    return row && Number(row[0])
  }

  async prune(olderThan: number, prefix = ''): Promise<number> {
    checkAge(olderThan)
    checkText(prefix, 'the prefix')
    const isOld = `raised_at < ${TIME} - ${olderThan * 1_000}`
    return ((await this.#ask(`delete from ${this.#table} where ${isOld} and ${begins(prefix)}`)) as Report).affectedRows
  }

  async install(): Promise<void> {
    await this.#ask(marksSql(this.#table))
  }

  /** Advances a mark over this connection. Rejects `STALE_TOKEN` if a higher one was shown. */
  async show(connection: Client, presented: Presented, signal?: AbortSignal): Promise<Report> {
    try {
      return (await send(connection, raiseSql(this.#table, presented), signal)) as Report
    } catch (error) {
      if (numberOf(error) !== STALE) throw this.failure(error, true)
    }
    // A transaction has locked the row by now, and the lock shows what a snapshot may not.
    const row = `select epoch, cast(token as char) from ${this.#table} where resource = ${hex(presented.resource)}`
    const [seen] = (await this.#ask(`${row} lock in share mode`, connection)) as [number, string][]
    const { resource, mark } = presented
    throw staleToken(resource, mark, seen ? { epoch: Number(seen[0]), token: BigInt(seen[1]) } : mark)
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
        return says('INVALID_ARGUMENT', `this user needs select, insert and update on ${this.#table}`)
      case 1205:
        return says(
          'STORE_UNAVAILABLE',
          'a transaction of another holder has the mark locked: if it hangs, end its session',
        )
      default:
        return storeFailure(error, sent)
    }
  }

  async #ask(sql: string, connection: Client = this.#client): Promise<unknown> {
    try {
      return await send(connection, sql)
    } catch (error) {
      throw this.failure(error, true)
    }
  }
}

/** One statement, limited to 5 s. Resolves to its rows as lists, or to what the server reports. */
async function send(connection: Client, sql: string, signal?: AbortSignal): Promise<unknown> {
  signal?.throwIfAborted()
  let failed: unknown
  const sent = request(systemClock(), LONGEST_REQUEST, async () => {
    try {
      return (await connection.query({ sql, rowsAsArray: true }))[0]
    } catch (error) {
      failed = error
      throw error
    }
  })
  try {
    return await abortable(sent, signal)
  } catch (error) {
    throw failed ?? error
  }
}

function begins(prefix: string): string {
  return `left(resource, ${Buffer.byteLength(prefix)}) = ${hex(prefix)}`
}

import { checkText } from '../../contract/check.ts'
import { request } from '../../contract/request.ts'
import { LONGEST_REQUEST, systemClock } from '../../contract/time.ts'
import { literal } from '../../stores/postgres/sql.ts'
import { abortable, checkAge, checkMark, checkResource, type KeptMarks, type MarkRecord } from '../fence.ts'
import type { Shown } from '../mark.ts'
import type { Connector } from './connector.ts'
import { failure } from './failure.ts'
import type { FenceNames } from './names.ts'
import { raiseSql } from './sql.ts'

/**
 * The marks of one table. Each call is one statement with a limit of 5 s. The statements name only functions and operators
 * of `pg_catalog`, because a role that may create objects in a schema of the search path could shadow others.
 */
export class PostgresMarks implements KeptMarks {
  readonly #connector: Connector
  readonly #names: FenceNames

  constructor(connector: Connector, names: FenceNames) {
    this.#connector = connector
    this.#names = names
  }

  async raise(resource: string, mark: Shown, signal?: AbortSignal): Promise<void> {
    checkResource(resource)
    checkMark(mark)
    await this.show(raiseSql(this.#names, [{ resource, mark }]), signal)
  }

  /** Sends the statement of `raiseSql`. What it waits for may be newer than a snapshot of the level of the session. */
  async show(text: string, signal?: AbortSignal): Promise<void> {
    await this.ask(`set transaction isolation level read committed; ${text}`, signal)
  }

  async list(prefix = ''): Promise<readonly MarkRecord[]> {
    checkText(prefix, 'the prefix')
    const columns = 'resource, slot, epoch, token::pg_catalog.text, extract(epoch from raised_at)'
    const rows = await this.ask(
      `select ${columns} from ${this.#names.marks}
       where pg_catalog.starts_with(resource, ${literal(prefix)}) order by resource, slot`,
    )
    return rows.map(([resource, slot, epoch, token, raisedAt]) => ({
      resource: String(resource),
      ...(slot !== '' && { slot: String(slot) }),
      epoch: Number(epoch),
      token: BigInt(String(token)),
      raisedAt: Math.floor(Number(raisedAt) * 1000),
    }))
  }

  async advance(resource: string): Promise<number | undefined> {
    checkResource(resource)
    const { marks } = this.#names
    const isOfResource = `resource operator(pg_catalog.=) ${literal(resource)}`
    const [row] = await this.ask(
      `update ${marks} set token = 0, raised_at = pg_catalog.clock_timestamp(), epoch = greatest(epoch,
         (select pg_catalog.max(epoch) from ${marks} where ${isOfResource})) operator(pg_catalog.+) 1
       where ${isOfResource} and slot operator(pg_catalog.=) '' returning epoch`,
    )
    return row && Number(row[0])
  }

  async prune(olderThan: number, prefix = ''): Promise<number> {
    checkAge(olderThan)
    checkText(prefix, 'the prefix')
    const { marks } = this.#names
    const limit = `(pg_catalog.clock_timestamp() operator(pg_catalog.-) interval '${olderThan} milliseconds')`
    const rows = await this.ask(
      `delete from ${marks} as mark
       where raised_at operator(pg_catalog.<) ${limit} and pg_catalog.starts_with(resource, ${literal(prefix)})
       and not exists (select from ${marks} as other where other.resource operator(pg_catalog.=) mark.resource
         and other.raised_at operator(pg_catalog.>=) ${limit}) returning 1`,
    )
    return rows.length
  }

  /** Sends one statement, or several whose rows do not matter. */
  async ask(text: string, signal?: AbortSignal): Promise<unknown[][]> {
    signal?.throwIfAborted()
    const asked = request(systemClock(), LONGEST_REQUEST, async () => {
      try {
        return await this.#connector.query(text)
      } catch (error) {
        throw failure(error, this.#names.marks, true)
      }
    })
    return abortable(asked, signal)
  }
}

import { checkDuration, checkStoredName, invalid, show } from '../../contract/check.ts'
import { LONGEST_REQUEST } from '../../contract/time.ts'
import type { WorkArguments } from '../../core/work.ts'
import type { PostgresClient } from '../../stores/postgres/client.ts'
import { serialized } from '../../stores/postgres/migrate.ts'
import type { Tables } from '../../stores/postgres/names.ts'
import {
  abortable,
  assertNotEnded,
  checkFence,
  type FenceCallOptions,
  type FenceOptions,
  presentedByAll,
  signalOf,
  type TransactionFence,
  transactionArguments,
} from '../fence.ts'
import type { Holder, Holders } from '../mark.ts'
import { type AnyTransaction, ask, connectorOf, type TransactionOf } from './client.ts'
import { failure, isDeadlock, isOldSnapshot, isUnknown, refusalOf } from './failure.ts'
import { PostgresMarks } from './marks.ts'
import { fenceNames } from './names.ts'
import { marksSql, type RowFence, raiseSql, rowSql } from './sql.ts'

export type { PgClient, PgPool, PostgresClient, PostgresJs } from '../../stores/postgres/client.ts'
export type { Tables } from '../../stores/postgres/names.ts'
export type { FenceCallOptions, FenceOptions, KeptMarks, MarkRecord, TransactionFence } from '../fence.ts'
export type { Holder, Holders, Mark, Marks, Shown } from '../mark.ts'
export type { AnyTransaction, TransactionOf } from './client.ts'
export type { RowFence } from './sql.ts'

export interface PostgresFenceOptions extends FenceOptions, Tables {
  /** The table of marks. @default 'fence' */
  readonly table?: string | undefined
  /**
   * Where the leases are if this database has them too (`holdfast/postgres`); true for the default tables. A transaction
   * then also checks the row of its lease, and nobody else is granted the name until it ends. @default false
   */
  readonly leases?: boolean | Tables | undefined
  /**
   * How long a transaction of the fence may be idle between two statements, in milliseconds. After that the server ends
   * its session, so that a holder that was paused in a transaction does not block the next one. @default no limit
   */
  readonly maxIdle?: number | undefined
}

/**
 * A fence in the transactions of PostgreSQL. The check costs no round trip with pg, and one with postgres.js. With
 * `leases`, calls also reject `LEASE_LOST` if the row of the lease says so. `transaction` also rejects
 * `INVALID_ARGUMENT` if `work` ignored the error of a statement.
 */
export interface PostgresFence<Transaction> extends TransactionFence<Transaction, AnyTransaction> {
  /** The SQL of the check, with inline values, for an ORM that does not expose its client. */
  statement(lease: Holder | Holders): string
}

/**
 * A fence for the tables of PostgreSQL 12 or later. `client` is the one that writes to them: a `Pool` or `Client` of
 * pg >= 8.11, or postgres.js >= 3.4. The fence needs a table of its own: call `fence.install()`, or run the SQL that
 * `holdfast fence sql` prints. Throws `INVALID_ARGUMENT`.
 */
export function postgresFence<Client extends PostgresClient>(
  client: Client,
  options: PostgresFenceOptions = {},
): PostgresFence<TransactionOf<Client>> {
  checkFence(options, ['schema', 'table', 'leases', 'maxIdle'], 'postgresFence')
  const { schema, table, leases, maxIdle } = options
  if (leases !== undefined && typeof leases !== 'boolean' && typeof leases !== 'object')
    throw invalid(`leases is ${show(leases)}: expected true, or { schema, table }`)
  if (maxIdle !== undefined) checkDuration(maxIdle, 'maxIdle')
  const names = fenceNames({ schema, table }, leases)
  const connector = connectorOf(client)
  const marks = new PostgresMarks(connector, names)
  const limit = maxIdle === undefined ? '' : `set local idle_in_transaction_session_timeout = ${maxIdle}; `
  const statement = (lease: Holder | Holders): string => {
    const presented = presentedByAll(lease, options)
    if (leases) for (const { name } of presented) checkStoredName(name)
    return raiseSql(names, presented)
  }

  async function transaction<Result>(
    lease: Holder | Holders,
    ...args: WorkArguments<FenceCallOptions, TransactionOf<Client>, Result>
  ): Promise<Result> {
    const { signal, work } = transactionArguments(args)
    const first = limit + statement(lease)
    signal?.throwIfAborted()
    let phase: 'opening' | 'work' | 'commit' = 'opening'
    let result: Result | undefined
    const attempt = async (opened: unknown): Promise<void> => {
      signal?.throwIfAborted()
      phase = 'work'
      result = await work(opened as TransactionOf<Client>)
      signal?.throwIfAborted()
      assertNotEnded(lease)
      phase = 'commit'
    }
    const until = performance.now() + LONGEST_REQUEST
    // Transactions that call check() several times may mark in another order. And above `read committed` the snapshot is
    // older than what this one waited for. Once it was shown, no older holder changes marks any more.
    const carryOut = async (): Promise<void> => {
      const left = until - performance.now()
      return connector.transaction(first, attempt, left).catch(async (error: unknown) => {
        const mayRepeat = isIn(phase, 'opening') && (isDeadlock(error) || isOldSnapshot(error))
        if (!mayRepeat || performance.now() >= until) throw error
        if (isOldSnapshot(error)) await marks.show(statement(lease), signal)
        return carryOut()
      })
    }
    const carriedOut = carryOut()
    try {
      await abortable(carriedOut, signal, () => phase !== 'opening')
      return result as Result
    } catch (error) {
      if (signal?.aborted && error === signal.reason) throw error
      if (isIn(phase, 'opening')) throw failure(error, names.marks, false)
      throw refusalOf(error) ?? (isIn(phase, 'commit') && isUnknown(error) ? failure(error, names.marks, true) : error)
    }
  }

  return {
    transaction,
    async check(lease, opened) {
      try {
        await ask(opened, statement(lease))
      } catch (error) {
        throw failure(error, names.marks, false)
      }
    },
    statement,
    async touch(lease, call) {
      await marks.show(statement(lease), signalOf(call, 'touch'))
    },
    marks,
    async install() {
      await marks.ask(serialized(marksSql(names)))
    },
  }
}

/** The SQL of `install()`, for your own migrations. */
export function fenceSql({
  schema,
  table,
  leases,
}: Pick<PostgresFenceOptions, 'schema' | 'table' | 'leases'> = {}): string {
  return `begin;\n${serialized(marksSql(fenceNames({ schema, table }, leases)))}\ncommit;\n`
}

/** The SQL of a trigger that refuses row updates with a lower token, for writers in any language. */
export function rowFenceSql(row: RowFence, tables: Tables = {}): string {
  const { resource, epoch } = row
  checkFence({ resource, epoch }, [], 'rowFenceSql')
  return `begin;\n${serialized(rowSql(fenceNames(tables), row))}\ncommit;\n`
}

/** TypeScript does not see that the callback has changed it. */
function isIn(phase: string, expected: string): boolean {
  return phase === expected
}

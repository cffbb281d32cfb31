import { checkDuration, checkStoredName, invalid, show } from '../../contract/check.ts'
import type { PostgresClient } from '../../stores/postgres/client.ts'
import { serialized } from '../../stores/postgres/migrate.ts'
import type { Tables } from '../../stores/postgres/names.ts'
import { checkFence, type FenceOptions, type Presented, presentedByAll } from '../fence.ts'
import type { Holder, Holders } from '../mark.ts'
import { type TransactionFence, transactionFence } from '../transaction.ts'
import { type AnyTransaction, connectorOf, type TransactionOf } from './client.ts'
import { PostgresEngine } from './engine.ts'
import { fenceNames } from './names.ts'
import { marksSql, type RowFence, raiseSql, rowSql } from './sql.ts'

export type { PgClient, PgPool, PostgresClient, PostgresJs } from '../../stores/postgres/client.ts'
export type { Tables } from '../../stores/postgres/names.ts'
export type { FenceCallOptions, FenceOptions } from '../fence.ts'
export type { Holder, Holders, Mark, Marks, Shown } from '../mark.ts'
export type { KeptMarks, MarkRecord } from '../marks.ts'
export type { TransactionFence } from '../transaction.ts'
export type { AnyTransaction, TransactionOf } from './client.ts'
export type { RowFence } from './sql.ts'

export interface PostgresFenceOptions extends FenceOptions, Tables {
  /** The table of marks. @default 'fence' */
  readonly table?: string | undefined
  /**
   * The tables of the leases if this database has them too (`holdfast/postgres`); true for the default ones. A transaction
   * then also checks the row of its lease, and nobody else is granted the name until it ends. @default false
   */
  readonly leases?: boolean | Tables | undefined
  /**
   * Milliseconds for which a transaction of the fence may be idle between two statements. After that the server ends its
   * session, so that a holder that was paused in a transaction does not block the next one. @default no limit
   */
  readonly maxIdle?: number | undefined
}

/**
 * A fence in the transactions of PostgreSQL. The check costs no round trip with pg, and one with postgres.js. With
 * `leases`, calls also reject `LEASE_LOST` if the row of the lease says so. `transaction` also rejects
 * `INVALID_ARGUMENT` if `work` ignored the error of a statement.
 */
export interface PostgresFence<Transaction> extends TransactionFence<Transaction, AnyTransaction> {
  /**
   * The SQL of the check, with inline values, for an ORM that does not expose its client. Run it first in a transaction:
   * outside of one it guards nothing.
   */
  statement(lease: Holder | Holders): string
}

/**
 * A fence for the tables of PostgreSQL 12 or later. `client` is the one that writes to them: a `Pool` of pg >= 8.11, a
 * `Client` of pg >= 8.21, or postgres.js >= 3.4. The fence needs a table of its own: call `fence.install()`, or run the SQL
 * that `holdfast fence sql` prints. Throws `INVALID_ARGUMENT`.
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
  const engine = new PostgresEngine<TransactionOf<Client>>(connectorOf(client), names, maxIdle)
  const present = (lease: Holder | Holders): readonly Presented[] => {
    const presented = presentedByAll(lease, options)
    if (leases) for (const { name } of presented) checkStoredName(name)
    return presented
  }
  return { ...transactionFence(engine, present), statement: lease => raiseSql(names, present(lease)) }
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

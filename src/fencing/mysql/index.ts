import type { MysqlClient } from '../../stores/mysql/connection.ts'
import { tableOf } from '../../stores/mysql/schema.ts'
import { checkFence, type FenceOptions, type Presented, presentedByAll } from '../fence.ts'
import type { Holder, Holders } from '../mark.ts'
import { type TransactionFence, transactionFence } from '../transaction.ts'
import { type AnyTransaction, promised, type TransactionOf } from './client.ts'
import { MysqlEngine } from './engine.ts'
import { MARKS, marksSql, raiseSql } from './sql.ts'

export type { MysqlClient } from '../../stores/mysql/connection.ts'
export type { FenceCallOptions, FenceOptions } from '../fence.ts'
export type { Holder, Holders, Mark, Marks, Shown } from '../mark.ts'
export type { KeptMarks, MarkRecord } from '../marks.ts'
export type { TransactionFence } from '../transaction.ts'
export type { AnyTransaction, TransactionOf } from './client.ts'

export interface MysqlFenceOptions extends FenceOptions {
  /** The table of marks, in the database of the client. @default 'holdfast_fence' */
  readonly table?: string | undefined
}

/** A fence in the transactions of MySQL. Roll back after a rejection of `check`: MySQL keeps the transaction open. */
export interface MysqlFence<Transaction> extends TransactionFence<Transaction, AnyTransaction> {
  /**
   * The SQL of the check, with its values, for an ORM that does not expose its client. Run the statements one after the
   * other. A statement refuses a stale token with error 1690. Permits wait for each other, unlike with `check`.
   */
  statements(lease: Holder | Holders): readonly string[]
}

/**
 * A fence for the tables of MariaDB 10.6 or MySQL 8.0, or later, over the client that writes to them: a pool or a
 * connection of mysql2 >= 3, or of mysql2/promise. Its own table must exist: `fence.install()`, or what
 * `holdfast fence sql` prints. Throws `INVALID_ARGUMENT`.
 */
export function mysqlFence<Of extends MysqlClient>(
  client: Of,
  options: MysqlFenceOptions = {},
): MysqlFence<TransactionOf<Of>> {
  checkFence(options, ['table'], 'mysqlFence')
  const table = tableOf({ table: options.table ?? MARKS })
  const engine = new MysqlEngine<TransactionOf<Of>>(promised(client), table)
  const present = (lease: Holder | Holders): readonly Presented[] => presentedByAll(lease, options)
  return { ...transactionFence(engine, present), statements: lease => raiseSql(table, present(lease)) }
}

/** The SQL that creates the table of marks. Throws `INVALID_ARGUMENT`. */
export function fenceSql({ table = MARKS }: Pick<MysqlFenceOptions, 'table'> = {}): string {
  return `${marksSql(tableOf({ table }))};\n`
}

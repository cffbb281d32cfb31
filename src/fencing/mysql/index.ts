import { invalid } from '../../contract/check.ts'
import type { WorkArguments } from '../../core/work.ts'
import type { MysqlClient } from '../../stores/mysql/connection.ts'
import { tableOf } from '../../stores/mysql/schema.ts'
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
import { type AnyTransaction, connectionOf, IN_TRANSACTION, promised, type TransactionOf } from './client.ts'
import { Connector } from './connector.ts'
import { MysqlMarks } from './marks.ts'
import { MARKS, marksSql, raiseSql } from './sql.ts'

export type { MysqlClient } from '../../stores/mysql/connection.ts'
export type { FenceCallOptions, FenceOptions, KeptMarks, MarkRecord, TransactionFence } from '../fence.ts'
export type { Holder, Holders, Mark, Marks, Shown } from '../mark.ts'
export type { AnyTransaction, TransactionOf } from './client.ts'

export interface MysqlFenceOptions extends FenceOptions {
  /** The table of marks, in the database of the client. @default 'holdfast_fence' */
  readonly table?: string | undefined
}

/**
 * A fence in the transactions of MySQL. Roll back after a rejection of `check`: MySQL keeps the transaction open.
 * `check` rejects `INVALID_ARGUMENT` outside of a transaction.
 */
export interface MysqlFence<Transaction> extends TransactionFence<Transaction, AnyTransaction> {
  /**
   * The SQL of the check, with its values, for an ORM that does not expose its client: run the statements one after the
   * other. One refuses with error 1690. Permits wait for each other, unlike those of `check`.
   */
  statements(lease: Holder | Holders): readonly string[]
}

/**
 * A fence before the tables of MariaDB 10.6 or MySQL 8.0, or later, over the client that writes to them: a pool or a
 * connection of mysql2 >= 3, or of mysql2/promise. Its own table must exist: `fence.install()`, or what
 * `holdfast fence sql` prints. Throws `INVALID_ARGUMENT`.
 */
export function mysqlFence<Of extends MysqlClient>(
  client: Of,
  options: MysqlFenceOptions = {},
): MysqlFence<TransactionOf<Of>> {
  checkFence(options, ['table'], 'mysqlFence')
  const table = tableOf({ table: options.table ?? MARKS })
  const own = promised(client)
  const marks = new MysqlMarks(own, table)
  const connector = new Connector(client, own, marks)

  async function transaction<Result>(
    lease: Holder | Holders,
    ...args: WorkArguments<FenceCallOptions, TransactionOf<Of>, Result>
  ): Promise<Result> {
    const { signal, work } = transactionArguments(args)
    const presented = presentedByAll(lease, options)
    signal?.throwIfAborted()
    let isOpen = false
    const carriedOut = connector.transaction(presented, async connection => {
      signal?.throwIfAborted()
      isOpen = true
      const result = await work(connection as TransactionOf<Of>)
      signal?.throwIfAborted()
      assertNotEnded(lease)
      return result
    })
    return abortable(carriedOut, signal, () => isOpen)
  }

  return {
    transaction,
    async check(lease, opened) {
      const { serverStatus } = await marks.show(connectionOf(opened), presentedByAll(lease, options))
      if (!(serverStatus & IN_TRANSACTION))
        throw invalid('this connection is in no transaction, so the fence guards nothing: begin one first')
    },
    statements: lease => raiseSql(table, presentedByAll(lease, options)),
    async touch(lease, call) {
      await marks.touch(presentedByAll(lease, options), signalOf(call, 'touch'))
    },
    marks,
    install: () => marks.install(),
  }
}

/** The SQL that creates the table of marks. Throws `INVALID_ARGUMENT`. */
export function fenceSql({ table = MARKS }: Pick<MysqlFenceOptions, 'table'> = {}): string {
  return `${marksSql(tableOf({ table }))};\n`
}

import { checkKeys, checkSignal, invalid } from '../../contract/check.ts'
import { LeaseError } from '../../contract/errors.ts'
import { LONGEST_REQUEST } from '../../contract/time.ts'
import type { MysqlClient } from '../../stores/mysql/connection.ts'
import { numberOf } from '../../stores/mysql/failure.ts'
import { tableOf } from '../../stores/mysql/schema.ts'
import { NoAnswer, within } from '../../stores/shared/timeouts.ts'
import {
  abortable,
  assertNotEnded,
  checkFence,
  type FenceOptions,
  type Presented,
  presentedByAll,
  type TransactionFence,
  type TransactionOptions,
} from '../fence.ts'
import type { Holder, Holders } from '../mark.ts'
import {
  type AnyTransaction,
  AUTOCOMMIT,
  type Client,
  COMMIT,
  connectionOf,
  IN_TRANSACTION,
  promised,
  type Report,
  ROLLBACK,
  type TransactionOf,
} from './client.ts'
import { MysqlMarks } from './marks.ts'
import { marksSql, raiseSql } from './sql.ts'

export type { MysqlClient } from '../../stores/mysql/connection.ts'
export type { FenceOptions, KeptMarks, MarkRecord, TransactionFence, TransactionOptions } from '../fence.ts'
export type { Holder, Holders, Mark, Marks } from '../mark.ts'
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
  /** The SQL of the check, with its values, for an ORM that does not expose its client. It refuses with error 1690. */
  statement(lease: Holder | Holders): string
}

/** Milliseconds. */
const LONGEST_COMMIT = 30_000

/** What the server reports when a savepoint does not exist. */
const NO_SAVEPOINT = 1305

/** What the server reports when two transactions waited for each other. A cause has no number. */
const DEADLOCK = 'ER_LOCK_DEADLOCK'

/** After a deadlock, before the work has begun. */
const MOST_RETRIES = 3

/** Connections that are in a transaction of ours: one has one at a time. */
const busy = new WeakSet<object>()

/** Connections that did not answer in time. */
const hung = new WeakSet<object>()

/** Connections that had autocommit before a transaction of ours, and do not have it again yet. */
const altered = new WeakSet<object>()

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
  const table = tableOf({ table: options.table ?? 'holdfast_fence' })
  const own = promised(client)
  const marks = new MysqlMarks(own, table)

  async function transaction<Result>(
    lease: Holder | Holders,
    work: (transaction: TransactionOf<Of>) => Promise<Result> | Result,
    { signal, ...rest }: TransactionOptions = {},
  ): Promise<Result> {
    checkKeys(rest, new Set(['signal']), 'transaction')
    checkSignal(signal)
    if (typeof work !== 'function') throw invalid('a transaction needs a function that does its work')
    const presented = presentedByAll(lease, options)
    signal?.throwIfAborted()
    if (busy.has(client))
      throw invalid(
        'this connection is in a transaction of a fence: use fence.check(connection, lease) there, or a pool',
      )
    if (!own.getConnection) busy.add(client)
    let isOpen = false
    const carriedOut = carryOut(presented, async connection => {
      signal?.throwIfAborted()
      isOpen = true
      const result = await work(connection as TransactionOf<Of>)
      signal?.throwIfAborted()
      assertNotEnded(lease)
      return result
    })
    return abortable(
      carriedOut.finally(() => busy.delete(client)),
      signal,
      () => isOpen,
    )
  }

  async function carryOut<Result>(
    presented: readonly Presented[],
    work: (connection: Client) => Promise<Result>,
  ): Promise<Result> {
    const connection = own.getConnection ? await lend() : own
    const until = performance.now() + LONGEST_REQUEST
    const wasAltered = altered.has(connection)
    const { serverStatus } = await opening(connection, ask(connection, 'do 0')).catch(error => {
      giveBack(connection)
      throw error
    })
    if (serverStatus & IN_TRANSACTION) {
      giveBack(connection)
      throw invalid('this connection is in a transaction: use fence.check there')
    }
    let isCommitted = false
    try {
      await opening(connection, within(open(connection, presented), until - performance.now()))
      const result = await work(connection)
      await ask(connection, 'release savepoint holdfast').catch(error => {
        if (numberOf(error) !== NO_SAVEPOINT) throw marks.failure(error, false)
        throw invalid('the transaction was committed or rolled back before its work ended: the rest was rolled back')
      })
      await ask(connection, COMMIT, LONGEST_COMMIT).catch(error => {
        hung.add(connection)
        throw marks.failure(error, true)
      })
      isCommitted = true
      return result
    } finally {
      const ended = end(connection, isCommitted, wasAltered ? serverStatus | AUTOCOMMIT : serverStatus)
      // A connection that hangs waits for its rollback: not the caller.
      if (!hung.has(connection)) await ended
    }
  }

  /** Nothing of the transaction is written if this rejects, whatever became of its statements. */
  async function opening<Answer>(connection: Client, answer: Promise<Answer>): Promise<Answer> {
    try {
      return await answer
    } catch (error) {
      const isUnknown = error instanceof NoAnswer || LeaseError.is(error, 'OUTCOME_UNKNOWN')
      if (isUnknown) hung.add(connection)
      if (!LeaseError.is(error, 'OUTCOME_UNKNOWN')) throw marks.failure(error, false)
      throw new LeaseError('STORE_UNAVAILABLE', error.message, { cause: error.cause })
    }
  }

  async function open(connection: Client, presented: readonly Presented[]): Promise<void> {
    // Without autocommit: else, after a deadlock, statements of a work that goes on would each be committed.
    await ask(connection, 'set autocommit = 0')
    await show(connection, presented, MOST_RETRIES)
    await ask(connection, 'savepoint holdfast')
  }

  /** After a deadlock MySQL has rolled back, and nothing was done yet. */
  async function show(connection: Client, presented: readonly Presented[], retries: number): Promise<void> {
    try {
      await marks.show(connection, presented)
    } catch (error) {
      const { cause } = error as { cause?: { code?: unknown } }
      if (retries === 0 || cause?.code !== DEADLOCK) throw error
      await show(connection, presented, retries - 1)
    }
  }

  async function lend(): Promise<Client> {
    try {
      return await (own.getConnection?.() ?? own)
    } catch (error) {
      throw marks.failure(error, false)
    }
  }

  /** Rolls back what was not committed, and restores the session. */
  async function end(connection: Client, isCommitted: boolean, before: number): Promise<void> {
    try {
      if (hung.has(connection) && own.getConnection) return giveBack(connection)
      await within(restore(connection, isCommitted, before))
    } catch {
      hung.add(connection)
    }
    giveBack(connection)
  }

  /** Goes on after the caller was answered: else a connection that hung would stay without autocommit. */
  async function restore(connection: Client, isCommitted: boolean, before: number): Promise<void> {
    if (before & AUTOCOMMIT) altered.add(connection)
    if (!isCommitted) await connection.query({ sql: ROLLBACK })
    if (before & AUTOCOMMIT) await connection.query({ sql: 'set autocommit = 1' })
    altered.delete(connection)
  }

  /** One that hangs is closed instead, if it is of the pool. */
  function giveBack(connection: Client): void {
    if (!own.getConnection) hung.delete(connection)
    else if (hung.has(connection)) connection.destroy?.()
    else connection.release?.()
  }

  return {
    transaction,
    async check(opened, lease) {
      const { serverStatus } = await marks.show(connectionOf(opened), presentedByAll(lease, options))
      if (!(serverStatus & IN_TRANSACTION))
        throw invalid('this connection is in no transaction, so the fence guards nothing: begin one first')
    },
    statement: lease => raiseSql(table, presentedByAll(lease, options)),
    async touch(lease, signal) {
      await marks.touch(presentedByAll(lease, options), signal)
    },
    marks,
    install: () => marks.install(),
  }
}

async function ask(connection: Client, sql: string, limit?: number): Promise<Report> {
  return (await within(connection.query({ sql }), limit))[0] as Report
}

/** The SQL that creates the table of marks. Throws `INVALID_ARGUMENT`. */
export function mysqlFenceSql({ table = 'holdfast_fence' }: Pick<MysqlFenceOptions, 'table'> = {}): string {
  return `${marksSql(tableOf({ table }))};\n`
}

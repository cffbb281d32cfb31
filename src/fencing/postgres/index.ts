import { checkDuration, checkKeys, checkName, checkSignal, invalid } from '../../contract/check.ts'
import type { PostgresClient } from '../../stores/postgres/client.ts'
import { inTurn } from '../../stores/postgres/migrate.ts'
import type { Place } from '../../stores/postgres/names.ts'
import { abortable, assertNotOver, checkFence, type FenceOptions, type KeptMarks, showingOf } from '../fence.ts'
import type { Holder } from '../mark.ts'
import { type AnyTransaction, ask, connectorOf, type TransactionOf } from './client.ts'
import { failure, isUnknown, refusalOf } from './failure.ts'
import { PostgresMarks } from './marks.ts'
import { fenceNames } from './names.ts'
import { marksSql, type RowFence, raiseSql, rowSql } from './sql.ts'

export type { PgClient, PgPool, PostgresClient, PostgresJs } from '../../stores/postgres/client.ts'
export type { Place } from '../../stores/postgres/names.ts'
export type { FenceOptions, KeptMarks, MarkRecord } from '../fence.ts'
export type { Holder, Mark, Marks } from '../mark.ts'
export type { AnyTransaction, TransactionOf } from './client.ts'
export type { RowFence } from './sql.ts'

export interface PostgresFenceOptions extends FenceOptions, Place {
  /** The table of marks. @default 'fence' */
  readonly table?: string | undefined
  /**
   * Are the leases rows of this database too (`holdfast/postgres`), and where? Then a transaction also looks at the row
   * of its lease, and nobody else is granted the name until it ends. @default false
   */
  readonly leases?: boolean | Place | undefined
  /**
   * Milliseconds for which a transaction of the fence may stand still between two statements before the server ends its
   * session, so that a holder which was stopped in its middle does not keep the next one waiting. @default no limit
   */
  readonly idle?: number | undefined
}

export interface TransactionOptions {
  /** Ends the wait for the mark; while the work runs it is looked at before the commit. */
  readonly signal?: AbortSignal | undefined
}

/** Lets the transactions of a holder in as long as no newer one was seen. */
export interface PostgresFence<Transaction> {
  /**
   * Begins a transaction, shows the token of the lease, runs `work`, and commits. With pg the token goes along with
   * `begin` and costs no round trip, with postgres.js it costs one. Rejects `STALE_TOKEN` if a newer holder was seen;
   * `LEASE_LOST`, `MAX_HOLD` or `CLOSED` if the lease is over in this process, also just before the commit, and with
   * `leases` if its row says so; `STORE_UNAVAILABLE` if the mark was locked for 4 s; `OUTCOME_UNKNOWN` if the
   * connection ended while it committed, or the commit was not answered within 30 s; else with what the work threw.
   * Nothing is written unless it resolves, but for `OUTCOME_UNKNOWN`.
   */
  transaction<Result>(
    lease: Holder,
    work: (transaction: Transaction) => Promise<Result> | Result,
    options?: TransactionOptions,
  ): Promise<Result>
  /** The same for a transaction that you have begun: the first statement in it. After a rejection roll it back. */
  check(transaction: AnyTransaction, lease: Holder): Promise<void>
  /** That statement, with the values in it, for what has no client of its own to give, such as an ORM. */
  statement(lease: Holder): string
  /** Shows the token without writing: from here on every older holder is refused. Rejects as `transaction` does. */
  touch(lease: Holder, signal?: AbortSignal): Promise<void>
  /** The marks themselves, for fences elsewhere that keep theirs here. */
  readonly marks: KeptMarks
  /** Makes the table of marks and its functions if they are missing. It may be called again and again. */
  install(): Promise<void>
}

/**
 * A fence before the tables of a PostgreSQL 12 or later, over the client that writes to them: a `Pool` or `Client` of
 * pg >= 8.11, or postgres.js >= 3.4. Its own table must be there: `fence.install()`, or what `holdfast fence sql`
 * prints. Throws `INVALID_ARGUMENT`.
 */
export function postgresFence<Client extends PostgresClient>(
  client: Client,
  options: PostgresFenceOptions = {},
): PostgresFence<TransactionOf<Client>> {
  checkFence(options, ['schema', 'table', 'leases', 'idle'], 'postgresFence')
  const { schema, table, leases, idle } = options
  if (idle !== undefined) checkDuration(idle, 'idle')
  const names = fenceNames({ schema, table }, leases)
  const connector = connectorOf(client)
  const marks = new PostgresMarks(connector, names)
  const limit = idle === undefined ? '' : `set local idle_in_transaction_session_timeout = ${idle}; `
  const statement = (lease: Holder): string => {
    const showing = showingOf(lease, options)
    if (leases) checkName(lease.name)
    return raiseSql(names, showing, lease.name)
  }

  async function transaction<Result>(
    lease: Holder,
    work: (transaction: TransactionOf<Client>) => Promise<Result> | Result,
    { signal, ...rest }: TransactionOptions = {},
  ): Promise<Result> {
    checkKeys(rest, new Set(['signal']), 'transaction')
    checkSignal(signal)
    if (typeof work !== 'function') throw invalid('a transaction needs a function that does its work')
    const first = limit + statement(lease)
    signal?.throwIfAborted()
    let phase: 'opening' | 'work' | 'commit' = 'opening'
    let result: Result | undefined
    const carriedOut = connector.transaction(first, async opened => {
      signal?.throwIfAborted()
      phase = 'work'
      result = await work(opened as TransactionOf<Client>)
      signal?.throwIfAborted()
      assertNotOver(lease)
      phase = 'commit'
    })
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
    async check(opened, lease) {
      try {
        await ask(opened, statement(lease))
      } catch (error) {
        throw failure(error, names.marks, false)
      }
    },
    statement,
    async touch(lease, signal) {
      await marks.ask(statement(lease), signal)
    },
    marks,
    async install() {
      await marks.ask(inTurn(marksSql(names)))
    },
  }
}

/** What `install` carries out, and for the rows of a table what holds all their writers to the fence, as SQL. */
export function fenceSql({
  schema,
  table,
  leases,
}: Pick<PostgresFenceOptions, 'schema' | 'table' | 'leases'> = {}): string {
  return `begin;\n${inTurn(marksSql(fenceNames({ schema, table }, leases)))}\ncommit;\n`
}

/** A trigger that refuses updates of a row by lower tokens, as SQL, for all writers whatever their language. */
export function rowFenceSql(row: RowFence, place: Place = {}): string {
  const { resource, lineage } = row
  checkFence({ resource, lineage }, [], 'rowFenceSql')
  return `begin;\n${inTurn(rowSql(fenceNames(place), row))}\ncommit;\n`
}

/** TypeScript does not see that the callback has changed it. */
function isIn(phase: string, expected: string): boolean {
  return phase === expected
}

import { invalid } from '../../contract/check.ts'
import { driverOf, type MysqlClient } from '../../stores/mysql/connection.ts'

/** The argument of the work of a transaction: a connection of `mysql2/promise`. */
export type TransactionOf<Client> = Client extends { promise(): infer Promised }
  ? TransactionOf<Promised>
  : Client extends { getConnection(): Promise<infer Connection> }
    ? Connection
    : Client

/** A connection of mysql2 or mysql2/promise that is in a transaction. */
export interface AnyTransaction {
  query(...args: never[]): unknown
}

/** The report of the server about a statement without rows. */
export interface Report {
  readonly affectedRows: number
  readonly insertId: number
  readonly serverStatus: number
}

/** A flag of `serverStatus`: a transaction is open. */
export const IN_TRANSACTION = 1

/** A flag of `serverStatus`: each statement is committed by itself. */
export const AUTOCOMMIT = 2

/** A commit that ignores `completion_type`, which could begin the next transaction at once or end the connection. */
export const COMMIT = 'commit and no chain no release'
export const ROLLBACK = 'rollback and no chain no release'

/** The options of a query that override those of its client, so that rows are lists of plain values. */
export const ROWS = {
  rowsAsArray: true,
  nestTables: false,
  typeCast: (_: unknown, next: () => unknown): unknown => next(),
}

/** A connection of `mysql2/promise`. */
export interface Client {
  /** The connection of mysql2, which several connections of `mysql2/promise` may share. */
  readonly connection?: object
  query(query: { sql: string } & Partial<typeof ROWS>): Promise<[result: unknown, fields: unknown]>
  destroy?(): void
  release?(): void
}

/** A pool or a connection of `mysql2/promise`. */
export interface PromisedClient extends Client {
  getConnection?(): Promise<Client>
}

/** The client of the caller, with promises. Throws `INVALID_ARGUMENT` unless it is a client of mysql2. */
export function promised(client: MysqlClient): PromisedClient {
  driverOf(client, 'mysqlFence(client)')
  return inPromises(client)
}

/** The connection of the caller's transaction. Throws `INVALID_ARGUMENT` for a pool or no client of mysql2. */
export function connectionOf(transaction: unknown): Client {
  if (typeof transaction !== 'object' || transaction === null || !('query' in transaction))
    throw invalid('a fence needs a connection of mysql2 that is in a transaction')
  if ('getConnection' in transaction)
    throw invalid('a fence was given a pool: pass the one connection that is in a transaction')
  return inPromises(transaction)
}

/** The same client with promises instead of callbacks. */
function inPromises(client: object): PromisedClient {
  return 'promise' in client ? (client as { promise(): PromisedClient }).promise() : (client as PromisedClient)
}

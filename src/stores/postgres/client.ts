import type { Connection } from '../shared/connection.ts'

/** What this store needs of a `Pool` of pg >= 8.11. */
export interface PgPool {
  readonly options: object
  readonly totalCount: number
  connect(): unknown
}

/** What this store needs of a `Client` of pg >= 8.11. */
export interface PgClient {
  readonly host: string
  readonly port: number
  query(...args: never[]): unknown
}

/** What this store needs of postgres.js >= 3.4. */
export interface PostgresJs {
  readonly options: object
  unsafe(query: string, ...rest: never[]): unknown
}

/** A client of the caller's: it is never configured, and never closed. */
export type PostgresClient = PgPool | PgClient | PostgresJs

/** A connection as a client library makes it. */
export interface Wire extends Connection {
  /** Number of the server's process, as told at the login; that of a pooler is made up. */
  readonly pid: number | undefined
  /**
   * The first row. Of several statements, which take no values, it is that of the last one. Rejects if the connection ends
   * before the answer.
   */
  firstRow(text: string, values?: readonly string[]): Promise<readonly unknown[] | undefined>
  /** Resolves when the subscription is active. */
  listen(channel: string, notified: (message: string) => void): Promise<void>
}

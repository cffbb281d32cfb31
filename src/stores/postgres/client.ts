import type { Connection } from '../wire/connection.ts'

/** The part of a `Pool` of pg >= 8.11 that this store uses. */
export interface PgPool {
  readonly options: object
  readonly totalCount: number
  connect(): unknown
}

/** The part of a `Client` of pg >= 8.11 that this store uses. */
export interface PgClient {
  readonly host: string
  readonly port: number
  query(...args: never[]): unknown
}

/** The part of postgres.js >= 3.4 that this store uses. */
export interface PostgresJs {
  readonly options: object
  unsafe(query: string, ...rest: never[]): unknown
}

/** A client of the caller. It is never configured and never closed. */
export type PostgresClient = PgPool | PgClient | PostgresJs

/** A connection made by a client library. */
export interface Wire extends Connection {
  /** The id of the server's process, as reported at the login. A pooler makes up an id. */
  readonly pid: number | undefined
  /**
   * Resolves to the first row. For several statements it is that of the last one. Rejects if the connection ends before the
   * answer.
   */
  firstRow(text: string): Promise<readonly unknown[] | undefined>
  /** Resolves when the subscription is active. */
  listen(channel: string, notified: (message: string) => void): Promise<void>
}

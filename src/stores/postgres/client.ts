import type { AnyLink, Opener } from '../shared/link.ts'

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

/** Opens connections of our own, like those of one kind of client. */
export type Driver = Opener<Link>

interface AnyWire extends AnyLink {
  /** Number of the server's process, as told at the login; that of a pooler is made up. */
  readonly pid: number | undefined
  /** Resolves when the subscription is active. */
  listen(channel: string, heard: (message: string) => void): Promise<void>
}

/** One connection, as a client makes it. */
export interface Wire extends AnyWire {
  /**
   * The first row. Of several statements, which take no values, it is that of the last one. Rejects if the connection ends
   * before the answer.
   */
  firstRow(text: string, values?: readonly string[]): Promise<readonly unknown[] | undefined>
}

/** One connection. */
export interface Link extends AnyWire {
  /**
   * The first value of the first row. The second value must be `$0`. Rejects if the answer belongs to another request, or
   * if the connection ends before it. Use it for calls of functions by their full names, which set all that they depend on.
   */
  ask(text: string, values?: readonly string[]): Promise<unknown>
  /** The same for any other statement. It is limited in time, and finds only names of PostgreSQL itself. */
  askInTime(text: string, values?: readonly string[]): Promise<unknown>
  /** From now on a request is sent only after the one before is answered. */
  takeTurns(): void
}

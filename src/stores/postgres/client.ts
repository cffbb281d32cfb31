import { invalid } from '../../check.ts'
import { LONGEST_REQUEST } from '../../time.ts'
import { pg } from './pg.ts'
import { postgresJs } from './postgres-js.ts'

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

/** Connections of one kind of client. */
export interface Driver {
  /** Opens a connection of our own, like those of the client. `signal` ends the attempt. */
  open(signal: AbortSignal): Promise<Link>
}

/** One connection. */
export interface Link {
  /** Number of the server's process, as told at the login; that of a pooler is made up. */
  readonly pid: number | undefined
  /** The first value of the first row. Rejects if the connection ends before the answer. */
  ask(text: string, values?: readonly string[]): Promise<unknown>
  /** Resolves when messages are heard. */
  listen(channel: string, heard: (message: string) => void): Promise<void>
  /** Calls `ended` when the connection has ended by itself. */
  onEnd(ended: () => void): void
  /** False when a request would certainly fail. */
  isOpen(): boolean
  /** What is under way rejects. */
  close(): void
}

/**
 * A connection on which `first` was done, all within the longest request, and none once `closing` aborts: a server that
 * takes a connection and says no more, as one that stands still does, must not keep everybody waiting for ever.
 */
export async function openLink<First>(
  driver: Driver,
  first: (link: Link) => Promise<First>,
  closing: AbortSignal,
): Promise<{ link: Link; first: First }> {
  const late = new AbortController()
  const giveUp = (): void => late.abort()
  const timer = setTimeout(giveUp, LONGEST_REQUEST).unref()
  closing.addEventListener('abort', giveUp)
  const isLate = new Promise<never>((_, reject) => late.signal.addEventListener('abort', reject, { once: true }))
  let link: Link | undefined
  try {
    const opening = driver.open(late.signal)
    opening.then(opened => late.signal.aborted && opened.close()).catch(() => {})
    link = await Promise.race([opening, isLate])
    return { link, first: await Promise.race([first(link), isLate]) }
  } catch (error) {
    link?.close()
    throw late.signal.aborted ? new Error(`not connected within ${LONGEST_REQUEST} ms`) : error
  } finally {
    clearTimeout(timer)
    closing.removeEventListener('abort', giveUp)
  }
}

/** Throws `INVALID_ARGUMENT` for what is no client of PostgreSQL. */
export function driverOf(client: unknown, what: string): Driver {
  const driver =
    (typeof client === 'object' || typeof client === 'function') && client && (pg(client) ?? postgresJs(client))
  if (driver) return driver
  const given =
    client === null
      ? 'null'
      : typeof client === 'object'
        ? `an object of ${client.constructor?.name ?? 'no class'}`
        : `a ${typeof client}`
  throw invalid(`${what} was given ${given}: pass a Pool or Client of pg, or what postgres() of postgres.js answered`)
}

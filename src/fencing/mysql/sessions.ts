import { invalid } from '../../contract/check.ts'
import { LeaseError } from '../../contract/errors.ts'
import { type RequestOptions, request } from '../../contract/request.ts'
import { LONGEST_REQUEST, systemClock } from '../../contract/time.ts'
import { numberOf } from '../../stores/mysql/failure.ts'
import { LONGEST_COMMIT } from '../transaction.ts'
import {
  AUTOCOMMIT,
  type Client,
  COMMIT,
  IN_TRANSACTION,
  type PromisedClient,
  type Report,
  ROLLBACK,
  ROWS,
} from './client.ts'
import { Connections } from './connections.ts'
import { failure, isConflict } from './failure.ts'

/** The number of the error that a savepoint does not exist. */
const NO_SAVEPOINT = 1305

/** Connections of callers that are in a transaction of ours. A connection has one transaction at a time. */
const busy = new Connections()

/** Connections that have ended, or did not answer in time. */
const hung = new Connections()

/** Connections that had autocommit before a transaction of ours, and have not got it back yet. */
const altered = new Connections()

/** Carries out work over connections of the caller's client. */
export class Sessions {
  readonly #promised: PromisedClient
  readonly #table: string

  /** `promised`: the client with promises. `table`: the table that errors name. */
  constructor(promised: PromisedClient, table: string) {
    this.#promised = promised
    this.#table = table
  }

  /** Runs work whose statements are committed one by one, even if sessions have no autocommit. Limited to 5 s. */
  alone<Answer>(work: (connection: Client) => Promise<Answer>): Promise<Answer> {
    return request(systemClock(), LONGEST_REQUEST, late =>
      this.#lend(async (connection, isOurs) => {
        try {
          late.throwIfAborted()
          const answer: unknown = await work(connection)
          const isOpen = isReport(answer) && answer.serverStatus & IN_TRANSACTION
          if (isOpen && (!isOurs || answer.serverStatus & AUTOCOMMIT))
            throw invalid(
              'this connection is in a transaction, so the mark is not committed: use fence.check, or a pool',
            )
          if (isOurs && (isOpen || !isReport(answer))) await send(connection, COMMIT)
          return answer as Answer
        } catch (error) {
          if (isOurs && !hung.has(connection)) await connection.query({ sql: ROLLBACK }).catch(() => {})
          throw failure(error, this.#table, true)
        }
      }),
    )
  }

  /** Begins a transaction, calls `first` and then `work`, and commits. Rolls back if one of them fails. */
  async transaction<Result>(
    first: (connection: Client) => Promise<unknown>,
    work: (connection: Client) => Promise<Result>,
  ): Promise<Result> {
    if (busy.has(this.#promised))
      throw invalid(
        'this connection is in a transaction of a fence: use fence.check(lease, connection) there, or a pool',
      )
    if (!this.#promised.getConnection) busy.add(this.#promised)
    try {
      return await this.#lend(connection => this.#carryOut(connection, first, work))
    } finally {
      busy.delete(this.#promised)
    }
  }

  async #carryOut<Result>(
    connection: Client,
    first: (connection: Client) => Promise<unknown>,
    work: (connection: Client) => Promise<Result>,
  ): Promise<Result> {
    const until = performance.now() + LONGEST_REQUEST
    const wasAltered = altered.has(connection)
    const { serverStatus } = await this.#opening(connection, LONGEST_REQUEST, () => send(connection, 'do 0'))
    if (serverStatus & IN_TRANSACTION) throw invalid('this connection is in a transaction: use fence.check there')
    const hasAutocommit = wasAltered || (serverStatus & AUTOCOMMIT) !== 0
    let isCommitted = false
    try {
      await this.#opening(connection, until - performance.now(), () => open(connection, first, until))
      const result = await work(connection)
      await send(connection, 'release savepoint holdfast').catch(error => {
        if (numberOf(error) !== NO_SAVEPOINT) throw failure(error, this.#table, false)
        throw invalid('the transaction was committed or rolled back before its work ended: the rest was rolled back')
      })
      await send(connection, COMMIT, LONGEST_COMMIT).catch(error => {
        throw failure(error, this.#table, true)
      })
      isCommitted = true
      return result
    } finally {
      const restored = restore(connection, isCommitted, hasAutocommit)
      const ended = settled(LONGEST_REQUEST, () => restored, { background: true }).catch(() => hung.add(connection))
      // If the connection hangs, the caller does not wait for the rollback.
      if (!hung.has(connection)) await ended
    }
  }

  /** Opens a transaction. If this rejects, nothing of the transaction is written. */
  async #opening(connection: Client, limit: number, ask: () => Promise<unknown>): Promise<Report> {
    try {
      return (await settled(limit, ask)) as Report
    } catch (error) {
      if (!LeaseError.is(error, 'OUTCOME_UNKNOWN')) throw failure(error, this.#table, false)
      hung.add(connection)
      throw new LeaseError('STORE_UNAVAILABLE', error.message, { cause: error.cause })
    }
  }

  /** Lends a connection of a pool, or the client itself, to `work`. A connection of the pool that hangs is closed. */
  async #lend<Result>(work: (connection: Client, isOurs: boolean) => Promise<Result>): Promise<Result> {
    const lent = await this.#promised.getConnection?.().catch(error => {
      throw failure(error, this.#table, false)
    })
    const connection = lent ?? this.#promised
    hung.delete(connection)
    try {
      return await work(connection, lent !== undefined)
    } finally {
      if (hung.has(connection)) lent?.destroy?.()
      else lent?.release?.()
    }
  }
}

/** Sends one statement, limited to 5 s. Resolves to its rows as lists, or to the server's report. */
export async function send(connection: Client, sql: string, limit: number = LONGEST_REQUEST): Promise<unknown> {
  try {
    return (await settled(limit, () => connection.query({ sql, ...ROWS })))[0]
  } catch (error) {
    if (numberOf(error) === 0) hung.add(connection)
    throw error
  }
}

/** Does what `request` does, but rejects with the error of the client. */
async function settled<Answer>(limit: number, ask: () => Promise<Answer>, options?: RequestOptions): Promise<Answer> {
  const [outcome] = await request(systemClock(), limit, () => Promise.allSettled([ask()]), options)
  if (outcome.status === 'rejected') throw outcome.reason
  return outcome.value
}

const isReport = (answer: unknown): answer is Report => !Array.isArray(answer)

/** Begins a transaction, and again until this time if another one was in the way: nothing of it was done yet. */
async function open(connection: Client, first: (connection: Client) => Promise<unknown>, until: number): Promise<void> {
  // Turn autocommit off. Otherwise statements of work that continues after a deadlock would each be committed.
  await send(connection, 'set autocommit = 0')
  for (;;) {
    try {
      await first(connection)
      break
    } catch (error) {
      if (performance.now() >= until || !isConflict(error)) throw error
      await send(connection, ROLLBACK) // or the snapshot would stay
    }
  }
  await send(connection, 'savepoint holdfast')
}

/** Restores autocommit. It may continue after the call ended, or a connection that hung would stay without autocommit. */
async function restore(connection: Client, isCommitted: boolean, hasAutocommit: boolean): Promise<void> {
  if (hasAutocommit) altered.add(connection)
  if (!isCommitted) await connection.query({ sql: ROLLBACK })
  if (hasAutocommit) await connection.query({ sql: 'set autocommit = 1' })
  altered.delete(connection)
}

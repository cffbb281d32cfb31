import { invalid } from '../../contract/check.ts'
import { LeaseError } from '../../contract/errors.ts'
import { LONGEST_REQUEST } from '../../contract/time.ts'
import { numberOf } from '../../stores/mysql/failure.ts'
import { NoAnswer, within } from '../../stores/shared/timeouts.ts'
import type { Presented } from '../fence.ts'
import {
  AUTOCOMMIT,
  type Client,
  COMMIT,
  IN_TRANSACTION,
  type PromisedClient,
  type Report,
  ROLLBACK,
} from './client.ts'
import type { MysqlMarks } from './marks.ts'

/** Milliseconds. */
const LONGEST_COMMIT = 30_000

/** What the server reports when a savepoint does not exist. */
const NO_SAVEPOINT = 1305

/** What the server reports when two transactions waited for each other. A cause has no number. */
const DEADLOCK = 'ER_LOCK_DEADLOCK'

/** After a deadlock, before the work has begun. */
const MOST_RETRIES = 3

/** Connections of callers that are in a transaction of ours: one has one at a time. */
const busy = new WeakSet<object>()

/** Connections that did not answer in time. */
const hung = new WeakSet<object>()

/** Connections that had autocommit before a transaction of ours, and do not have it again yet. */
const altered = new WeakSet<object>()

/** Carries out transactions over connections of the caller's client. */
export class Connector {
  readonly #client: object
  readonly #promised: PromisedClient
  readonly #marks: MysqlMarks

  /** `promised` is `client` with promises. */
  constructor(client: object, promised: PromisedClient, marks: MysqlMarks) {
    this.#client = client
    this.#promised = promised
    this.#marks = marks
  }

  /** Begins a transaction, shows these marks, runs `work` in it, and commits. Rolls back if one of them fails. */
  async transaction<Result>(
    presented: readonly Presented[],
    work: (connection: Client) => Promise<Result>,
  ): Promise<Result> {
    if (busy.has(this.#client))
      throw invalid(
        'this connection is in a transaction of a fence: use fence.check(lease, connection) there, or a pool',
      )
    if (!this.#promised.getConnection) busy.add(this.#client)
    try {
      return await this.#carryOut(presented, work)
    } finally {
      busy.delete(this.#client)
    }
  }

  async #carryOut<Result>(
    presented: readonly Presented[],
    work: (connection: Client) => Promise<Result>,
  ): Promise<Result> {
    const connection = this.#promised.getConnection ? await this.#lend() : this.#promised
    const until = performance.now() + LONGEST_REQUEST
    const wasAltered = altered.has(connection)
    const { serverStatus } = await this.#opening(connection, ask(connection, 'do 0')).catch(error => {
      this.#release(connection)
      throw error
    })
    if (serverStatus & IN_TRANSACTION) {
      this.#release(connection)
      throw invalid('this connection is in a transaction: use fence.check there')
    }
    let isCommitted = false
    try {
      await this.#opening(connection, within(this.#open(connection, presented), until - performance.now()))
      const result = await work(connection)
      await ask(connection, 'release savepoint holdfast').catch(error => {
        if (numberOf(error) !== NO_SAVEPOINT) throw this.#marks.failure(error, false)
        throw invalid('the transaction was committed or rolled back before its work ended: the rest was rolled back')
      })
      await ask(connection, COMMIT, LONGEST_COMMIT).catch(error => {
        hung.add(connection)
        throw this.#marks.failure(error, true)
      })
      isCommitted = true
      return result
    } finally {
      const ended = this.#end(connection, isCommitted, wasAltered ? serverStatus | AUTOCOMMIT : serverStatus)
      // A connection that hangs waits for its rollback: not the caller.
      if (!hung.has(connection)) await ended
    }
  }

  /** Nothing of the transaction is written if this rejects, whatever became of its statements. */
  async #opening<Answer>(connection: Client, answer: Promise<Answer>): Promise<Answer> {
    try {
      return await answer
    } catch (error) {
      const isUnknown = error instanceof NoAnswer || LeaseError.is(error, 'OUTCOME_UNKNOWN')
      if (isUnknown) hung.add(connection)
      if (!LeaseError.is(error, 'OUTCOME_UNKNOWN')) throw this.#marks.failure(error, false)
      throw new LeaseError('STORE_UNAVAILABLE', error.message, { cause: error.cause })
    }
  }

  async #open(connection: Client, presented: readonly Presented[]): Promise<void> {
    // Without autocommit: else, after a deadlock, statements of a work that goes on would each be committed.
    await ask(connection, 'set autocommit = 0')
    await this.#show(connection, presented, MOST_RETRIES)
    await ask(connection, 'savepoint holdfast')
  }

  /** After a deadlock MySQL has rolled back, and nothing was done yet. */
  async #show(connection: Client, presented: readonly Presented[], retries: number): Promise<void> {
    try {
      await this.#marks.show(connection, presented)
    } catch (error) {
      const { cause } = error as { cause?: { code?: unknown } }
      if (retries === 0 || cause?.code !== DEADLOCK) throw error
      await this.#show(connection, presented, retries - 1)
    }
  }

  async #lend(): Promise<Client> {
    try {
      return await (this.#promised.getConnection?.() ?? this.#promised)
    } catch (error) {
      throw this.#marks.failure(error, false)
    }
  }

  /** Rolls back what was not committed, and restores the session. */
  async #end(connection: Client, isCommitted: boolean, before: number): Promise<void> {
    try {
      if (hung.has(connection) && this.#promised.getConnection) return this.#release(connection)
      await within(restore(connection, isCommitted, before))
    } catch {
      hung.add(connection)
    }
    this.#release(connection)
  }

  /** One that hangs is closed instead, if it is of the pool. */
  #release(connection: Client): void {
    if (!this.#promised.getConnection) hung.delete(connection)
    else if (hung.has(connection)) connection.destroy?.()
    else connection.release?.()
  }
}

/** Goes on after the caller was answered: else a connection that hung would stay without autocommit. */
async function restore(connection: Client, isCommitted: boolean, before: number): Promise<void> {
  if (before & AUTOCOMMIT) altered.add(connection)
  if (!isCommitted) await connection.query({ sql: ROLLBACK })
  if (before & AUTOCOMMIT) await connection.query({ sql: 'set autocommit = 1' })
  altered.delete(connection)
}

async function ask(connection: Client, sql: string, limit?: number): Promise<Report> {
  return (await within(connection.query({ sql }), limit))[0] as Report
}

import { invalid } from '../../contract/check.ts'
import type { PostgresClient } from '../../stores/postgres/client.ts'
import { driverOf } from '../../stores/postgres/driver.ts'
import { TEXT } from '../../stores/postgres/pg.ts'
import { inTime, NoAnswer } from '../../stores/wire/timeouts.ts'
import { LONGEST_COMMIT } from '../transaction.ts'
import { BEGUN, type Connector, endedEarly, RELEASE } from './connector.ts'
import { postgresJs, type Sql } from './postgres-js.ts'

/** The argument of `work`: a client of the pool, the client itself, or the `sql` of postgres.js. */
export type TransactionOf<Client> = Client extends {
  readonly totalCount: number
  connect: { (): Promise<infer Transaction>; (callback: never): void }
}
  ? Transaction
  : Client extends {
        begin: {
          (work: (transaction: infer Transaction) => unknown): unknown
          (options: string, work: (transaction: infer Transaction) => unknown): unknown
        }
      }
    ? Transaction
    : Client

/** A transaction of the caller: a client of pg, or the `sql` that postgres.js passed to the callback of `begin`. */
export type AnyTransaction = { query(...args: never[]): unknown } | { unsafe(query: string, ...rest: never[]): unknown }

interface Client {
  query(query: string | object): Promise<{ readonly rows: unknown[][] }>
  /** The state at the last answer: `I` idle, `T` in a transaction, `E` in one that failed. Versions before 8.21 lack it. */
  getTransactionStatus?(): string | null
}

interface Lent extends Client {
  on(event: 'error', listener: () => void): unknown
  off(event: 'error', listener: () => void): unknown
  release(broken: boolean): void
}

interface Pool {
  connect(): Promise<Lent>
}

/** Throws `INVALID_ARGUMENT` unless it is a client of PostgreSQL. */
export function connectorOf(client: PostgresClient): Connector {
  driverOf(client, 'postgresFence(client)')
  if ('unsafe' in client) return postgresJs(client as unknown as Sql)
  return 'totalCount' in client ? pool(client as unknown as Pool) : single(client as unknown as Client)
}

/** Sends statements in a transaction of the caller. Throws `INVALID_ARGUMENT` unless it may be one. */
export async function ask(transaction: unknown, text: string): Promise<void> {
  const of = (typeof transaction === 'object' || typeof transaction === 'function') && transaction
  if (of && ('totalCount' in of || 'begin' in of))
    throw invalid(
      'a pool was passed instead of a transaction: pass the client of pg, or the sql of begin(), that is in the transaction',
    )
  if (of && 'unsafe' in of) await (of as unknown as Sql).unsafe(text)
  else if (of && 'query' in of) await (of as unknown as Client).query(text)
  else throw invalid('a fence needs the client of pg, or the sql of begin() of postgres.js, that is in the transaction')
}

async function rows(client: Client, text: string): Promise<unknown[][]> {
  return (await client.query({ text, rowMode: 'array', types: TEXT })).rows
}

function pool(client: Pool): Connector {
  return {
    async query(text) {
      const { own, end } = await lent(client)
      let isHealthy = false
      try {
        const answer = await rows(own, text)
        isHealthy = true
        return answer
      } finally {
        end(isHealthy)
      }
    },
    async transaction(first, work, limit) {
      const { own, end } = await lent(client)
      await carryOut(own, first, work, limit, end, true)
    },
  }
}

/** Takes a client of the pool. `end` returns it, or closes it unless it is healthy. */
async function lent(client: Pool): Promise<{ own: Client; end(isHealthy: boolean): void }> {
  const own = await client.connect()
  // The pool does not listen while a client is checked out, so a connection error would end the process.
  const ignore = (): void => {}
  own.on('error', ignore)
  const end = (isHealthy: boolean): void => {
    own.off('error', ignore)
    own.release(!isHealthy)
  }
  // Its last user may have sent a commit without waiting for the answer.
  if (isOpen(own)) await inTime(own.query('select 1')).catch(() => {})
  if (!isOpen(own)) return { own, end }
  end(false)
  throw invalid(
    'a client was returned to the pool in a transaction, which has now been rolled back: commit or roll back before release()',
  )
}

/** Is the client in a transaction, as far as its version of pg reports this? */
function isOpen(client: Client): boolean {
  return ['T', 'E'].includes(client.getTransactionStatus?.() ?? '')
}

/** Clients that are in a transaction of ours. */
const busy = new WeakSet<object>()

function single(client: Client): Connector {
  const claim = (): void => {
    if (busy.has(client))
      throw invalid(
        'this client is already in a transaction of a fence: use fence.check(lease, client) in it, or a Pool',
      )
    if (!client.getTransactionStatus)
      throw invalid(
        'this Client of pg does not report whether it is in a transaction: pass a Pool, or use pg 8.21 or later',
      )
    // The fence would commit it, or a later rollback would lower the mark.
    if (isOpen(client))
      throw invalid(
        'this client is already in a transaction of yours: use fence.check(lease, client) in it, or end it first, or pass a Pool',
      )
  }
  return {
    async query(text) {
      claim()
      return rows(client, text)
    },
    async transaction(first, work, limit) {
      claim()
      busy.add(client)
      return carryOut(client, first, work, limit, () => busy.delete(client), false)
    },
  }
}

/** Sends `begin` and the first statement together, so that the fence costs no round trip. */
async function carryOut(
  client: Client,
  first: string,
  work: (transaction: unknown) => Promise<void>,
  limit: number,
  end: (isHealthy: boolean) => unknown,
  isOurs: boolean,
): Promise<void> {
  let isHealthy = true
  try {
    await inTime(client.query(`begin; ${first}${BEGUN}`), limit)
    await work(client)
    await inTime(client.query(`${RELEASE}; commit`), LONGEST_COMMIT).catch((error: unknown) => {
      throw endedEarly(error)
    })
  } catch (error) {
    const isUnanswered = error instanceof NoAnswer
    // The request may still open a transaction later. A client of the pool is closed instead of rolled back.
    const rolledBack = isUnanswered && isOurs ? false : isRolledBack(client)
    isHealthy = !isUnanswered && (await rolledBack)
    throw error
  } finally {
    end(isHealthy)
  }
}

async function isRolledBack(client: Client): Promise<boolean> {
  try {
    await inTime(client.query('rollback'))
    return true
  } catch {
    return false
  }
}

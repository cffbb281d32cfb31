import { invalid } from '../../contract/check.ts'
import { LONGEST_REQUEST } from '../../contract/time.ts'
import type { PostgresClient } from '../../stores/postgres/client.ts'
import { driverOf } from '../../stores/postgres/driver.ts'

/** What the work of a transaction is given: the client of the pool, the client itself, or the `sql` of postgres.js. */
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

/** Somebody's transaction: a client of pg, or the `sql` that postgres.js gave to `begin`. */
export type AnyTransaction = { query(...args: never[]): unknown } | { unsafe(query: string, ...rest: never[]): unknown }

/** The client of the caller, as a fence uses it. */
export interface Connector {
  /** The rows of one statement. */
  query(text: string): Promise<unknown[][]>
  /** Begins a transaction with this statement, does the work in it, and commits. Rolls back what fails. */
  transaction(first: string, work: (transaction: unknown) => Promise<void>): Promise<void>
}

interface Client {
  query(query: string | object): Promise<{ readonly rows: unknown[][]; readonly command?: string }>
}

interface Lent extends Client {
  on(event: 'error', listener: () => void): unknown
  off(event: 'error', listener: () => void): unknown
  release(broken: boolean): void
}

interface Pool extends Pick<Client, 'query'> {
  connect(): Promise<Lent>
}

interface Sql {
  unsafe(query: string): Promise<unknown> & { values(): Promise<unknown[][]> }
  begin(work: (transaction: Sql) => Promise<void>): Promise<void>
}

/** Throws `INVALID_ARGUMENT` for what is no client of PostgreSQL. */
export function connectorOf(client: PostgresClient): Connector {
  driverOf(client, 'postgresFence(client)')
  if ('unsafe' in client) return postgresJs(client as unknown as Sql)
  return 'totalCount' in client ? pool(client as unknown as Pool) : single(client as unknown as Client)
}

/** Sends a statement inside a transaction that is somebody's. Throws `INVALID_ARGUMENT` for what is none. */
export async function ask(transaction: unknown, text: string): Promise<void> {
  const of = (typeof transaction === 'object' || typeof transaction === 'function') && transaction
  if (of && ('totalCount' in of || 'begin' in of))
    throw invalid(
      'a fence was given all of a pool: pass the one client, or the sql of begin(), that is in a transaction',
    )
  if (of && 'unsafe' in of) await (of as unknown as Sql).unsafe(text)
  else if (of && 'query' in of) await (of as unknown as Client).query(text)
  else throw invalid('a fence needs a client of pg, or the sql of begin() of postgres.js, that is in a transaction')
}

async function rows(client: Pick<Client, 'query'>, text: string): Promise<unknown[][]> {
  return (await client.query({ text, rowMode: 'array' })).rows
}

function pool(client: Pool): Connector {
  return {
    query: text => rows(client, text),
    async transaction(first, work) {
      const own = await client.connect()
      // While it is lent nobody else listens, and the end of its connection would end the process.
      const ignore = (): void => {}
      own.on('error', ignore)
      const end = (isHealthy: boolean): void => {
        own.off('error', ignore)
        own.release(!isHealthy)
      }
      await carryOut(own, first, work, end, true)
    },
  }
}

/** Clients that are in a transaction of ours: one has one at a time. */
const busy = new WeakSet<object>()

function single(client: Client): Connector {
  const claim = (): void => {
    if (busy.has(client))
      throw invalid('this client of pg is in a transaction of a fence: use fence.check(client, lease) there, or a Pool')
  }
  return {
    async query(text) {
      claim()
      return rows(client, text)
    },
    async transaction(first, work) {
      claim()
      busy.add(client)
      return carryOut(client, first, work, () => busy.delete(client), false)
    },
  }
}

/** Both statements leave at once, so that the fence costs no round trip. */
async function carryOut(
  client: Client,
  first: string,
  work: (transaction: unknown) => Promise<void>,
  end: (isHealthy: boolean) => unknown,
  isOurs: boolean,
): Promise<void> {
  let isHealthy = true
  try {
    await limited(client.query(`begin; ${first}`))
    await work(client)
    // PostgreSQL says so, and no more, when the work went on after a statement of it had failed.
    if ((await limited(client.query('commit'), LONGEST_COMMIT)).command === 'ROLLBACK')
      throw invalid('a statement of the transaction failed and the work went on, so PostgreSQL rolled all of it back')
  } catch (error) {
    const isSilent = error instanceof Silence
    // What was sent may still open a transaction. A client of the pool is closed instead.
    const rolledBack = isSilent && isOurs ? false : isRolledBack(client)
    isHealthy = !isSilent && (await rolledBack)
    throw error
  } finally {
    end(isHealthy)
  }
}

async function isRolledBack(client: Client): Promise<boolean> {
  try {
    await limited(client.query('rollback'))
    return true
  } catch {
    return false
  }
}

/** Milliseconds. Deferred constraints and synchronous replicas take their time. */
const LONGEST_COMMIT = 30_000

/** No answer came in time; clients have no limit of their own unless they are given one. */
class Silence extends Error {}

async function limited<T>(answer: Promise<T>, limit: number = LONGEST_REQUEST): Promise<T> {
  let timer: NodeJS.Timeout | undefined
  const silence = new Promise<never>((_, reject) => {
    const error = new Silence(`no answer within ${limit} ms`)
    timer = setTimeout(() => reject(error), limit)
  })
  try {
    return await Promise.race([answer, silence])
  } finally {
    clearTimeout(timer)
  }
}

function postgresJs(sql: Sql): Connector {
  return {
    query: text => sql.unsafe(text).values(),
    async transaction(first, work) {
      const worked = Promise.withResolvers<void>()
      const committed = sql.begin(async transaction => {
        await limited(transaction.unsafe(first))
        await work(transaction)
        worked.resolve()
      })
      await Promise.race([worked.promise, committed])
      await limited(committed, LONGEST_COMMIT)
    },
  }
}

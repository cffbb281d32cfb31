import { invalid } from '../../contract/check.ts'
import { LeaseError } from '../../contract/errors.ts'
import { within } from '../../contract/request.ts'
import { systemClock } from '../../contract/time.ts'
import { decoded } from '../../stores/postgres/postgres-js.ts'
import { inTime } from '../../stores/wire/timeouts.ts'
import { LONGEST_COMMIT } from '../transaction.ts'
import { BEGUN, type Connector, endedEarly, RELEASE } from './connector.ts'

/** The part of postgres.js that is used: the `sql` of the caller, and the one that it passes to the work. */
export interface Sql {
  (...args: unknown[]): unknown
  unsafe(query: string): Query
  begin(work: (transaction: Sql) => Promise<void>): Promise<void>
  savepoint(...args: unknown[]): Promise<unknown>
}

/** A query. Awaiting it sends it, through its `handler`. */
interface Query extends Promise<unknown> {
  handler(query: Query): unknown
  reject(error: unknown): void
  raw(): Promise<(Uint8Array | null)[][]>
  execute(): Query
}

/** The codes of errors of postgres.js after its connection has ended. */
const LOST = /^(CONNECTION_(CLOSED|DESTROYED|ENDED)|ECONNRESET|ECONNREFUSED|ECONNABORTED|ETIMEDOUT|EPIPE)$/

export function postgresJs(sql: Sql): Connector {
  return {
    // The caller's types and transforms do not change bytes.
    query: async text => (await sql.unsafe(text).raw()).map(decoded),
    async transaction(first, work, limit) {
      const session = new Session()
      const opened = Promise.withResolvers<void>()
      const worked = Promise.withResolvers<void>()
      let isTooLate = false
      let failure: { readonly error: unknown } | undefined
      let released: Promise<unknown> | undefined
      const committed = sql.begin(async raw => {
        if (isTooLate) return begun // which has rejected, so postgres.js rolls back
        const transaction = session.guarded(raw)
        try {
          await session.outlived(async () => {
            await transaction.unsafe(first + BEGUN)
            opened.resolve()
            await begun
            await work(transaction)
          })
        } catch (error) {
          failure = { error }
          throw error
        } finally {
          session.isOver = true
          worked.resolve()
        }
        // The release is not awaited, so that it travels with the commit. If it fails, the commit commits nothing.
        released = raw.unsafe(RELEASE).execute()
      })
      committed.catch(() => session.end())
      // postgres.js waits without a limit: for a free connection, and for the answers to `begin` and to `rollback`.
      const begun = inTime(Promise.race([opened.promise, committed]), limit)
      await begun.catch((error: unknown) => {
        isTooLate = true
        throw error
      })
      await Promise.race([worked.promise, committed])
      await inTime(committed, LONGEST_COMMIT).catch((error: unknown) => {
        throw failure ? failure.error : error
      })
      await released?.catch((error: unknown) => {
        throw endedEarly(error)
      })
    },
  }
}

/**
 * The session of one transaction. postgres.js reopens a connection that has ended, under the same object. A work that
 * continues would then write outside of any transaction, or in that of somebody else, whom the `rollback` of postgres.js
 * would also hit. So from then on nothing is sent.
 */
class Session {
  /** Has the work ended? Queries that it did not await would come after the commit. */
  isOver = false
  readonly #lost = Promise.withResolvers<never>()
  readonly #ended = Promise.withResolvers<true>()
  #isLost = false

  constructor() {
    this.#lost.promise.catch(() => {}) // perhaps nobody awaits it
  }

  lose(): void {
    this.#isLost = true
    this.#lost.reject(lost())
  }

  /** Called when the transaction has failed, perhaps because the session has ended. */
  end(): void {
    this.lose()
    this.#ended.resolve(true)
  }

  /** Does not settle after the session has ended, because postgres.js would then send `commit` or `rollback`. */
  async outlived<Result>(work: () => Promise<Result>): Promise<Result> {
    try {
      return await work()
    } finally {
      if (this.#isLost && (await this.#hasEnded())) await new Promise<never>(() => {})
    }
  }

  /** Has the session ended? If an error only looked like its end, postgres.js must roll back. */
  #hasEnded(): Promise<boolean> {
    return within(systemClock(), LONGEST_COMMIT, this.#ended.promise, () => false)
  }

  /** The `sql` of a transaction or a savepoint, until the end of the session. */
  guarded(sql: Sql): Sql {
    return new Proxy(sql, {
      apply: (target, self, args) => this.#guardedQuery(Reflect.apply(target, self, args)),
      get: (target, key) => {
        if (key === 'savepoint') return (...args: unknown[]) => this.#savepoint(target, args)
        const value: unknown = Reflect.get(target, key)
        // The other properties make no queries. `typed` has properties of its own.
        if (key !== 'unsafe' && key !== 'file') return value
        return (...args: unknown[]) => this.#guardedQuery(Reflect.apply(value as Sql, target, args))
      },
    })
  }

  #savepoint(sql: Sql, args: unknown[]): Promise<unknown> {
    this.#assertOpen()
    const guarded = args.map(arg => {
      if (typeof arg !== 'function') return arg
      return (inner: Sql) =>
        this.outlived(async () => {
          const made: unknown = arg(this.guarded(inner))
          return Array.isArray(made) ? Promise.all(made) : made // postgres.js does the same, and sends them by that
        })
    })
    return Promise.race([sql.savepoint(...guarded), this.#lost.promise])
  }

  /** Guards a query, which is checked again when it is sent. Parts of queries pass unchanged. */
  #guardedQuery(made: unknown): unknown {
    this.#assertOpen()
    if (typeof made !== 'object' || made === null || !('handler' in made)) return made
    const query = made as Query
    const { handler, reject } = query
    query.handler = sent => {
      try {
        this.#assertOpen()
      } catch (error) {
        return reject(error)
      }
      return handler(sent)
    }
    // This comes before `begin` rejects. The work may continue until then.
    query.reject = error => {
      if (LOST.test(String((error as { code?: unknown } | undefined)?.code))) this.lose()
      reject(error)
    }
    return query
  }

  #assertOpen(): void {
    if (this.#isLost) throw lost()
    if (this.isOver)
      throw invalid('the transaction has ended, so this statement was not sent: await every statement in the work')
  }
}

function lost(): LeaseError {
  return new LeaseError(
    'STORE_UNAVAILABLE',
    'the session of this transaction ended, so this statement was not sent: end the work, and repeat the transaction',
  )
}

import { LeaseError } from '../../contract/errors.ts'
import type {
  BreakParameters,
  Busy,
  Claim,
  ClaimKey,
  Grant,
  Guarantees,
  LeaseRecord,
  Query,
  Store,
} from '../../contract/store.ts'
import { requestLimit } from '../../contract/time.ts'
import { type BatchedRequest, BatchedRequests, reportStale } from '../wire/batched-requests.ts'
import { type Driver, openConnection } from '../wire/connection.ts'
import { Connections } from '../wire/connections.ts'
import { Pruning } from '../wire/pruning.ts'
import type { MysqlConnection } from './connection.ts'
import { failure, isReply } from './failure.ts'
import { guarantees } from './guarantees.ts'
import { type Entry, REFUSED } from './leases.ts'
import { prepare } from './schema.ts'
import { list, prune, read, write } from './sql.ts'

interface Request extends BatchedRequest {
  readonly name: string
  /** The claim whose position in the queue counts. `undefined`: the queue does not matter. */
  readonly id: string | undefined
  readonly until: number
  /** The time until which the request is retried while its row is locked, or because others changed the row meanwhile. */
  readonly patientUntil: number
  /** The number of earlier attempts that wrote nothing. */
  tries: number
  /** May an earlier attempt have been carried out? */
  mayBeDone: boolean
  readonly decide: Decide<unknown>
}

/** Decides a request. `mayBeDone`: an earlier decision on it may have been carried out. */
type Decide<Answer> = (name: Entry, mayBeDone: boolean) => Answer

/** The functions that settle the requests. `undefined`: nothing of that request was written. */
type Reply = readonly ((() => void) | undefined)[]

/** Milliseconds for which a request is retried while its row is locked or others change the row first. */
const LOCK_PATIENCE = 3_000

/**
 * Milliseconds before a request is retried. The pause is random, on average half of the first value times the number of
 * attempts, of which at most the second value counts. So most clients of a crowd do not disturb the few that write next.
 */
const [CONFLICT, MOST_TRIES] = [10, 20]

/** The number of names that `inspect` reads at once. */
const PAGE = 200

export class MysqlStore implements Store {
  readonly kind = 'mysql'
  readonly guarantees: Guarantees = guarantees
  readonly #table: string
  readonly #connections: Connections<MysqlConnection>
  readonly #requests: BatchedRequests<MysqlConnection, Request, Reply>
  readonly #pruning: Pruning

  constructor(driver: Driver<MysqlConnection>, table: string, create: boolean) {
    this.#table = table
    this.#connections = new Connections<MysqlConnection>({
      open: closing => openConnection(driver, connection => prepare(connection, table, create), closing),
      failure: (error, connection) => failure(error, connection !== undefined),
      judge: error => (isReply(error) ? 'keep' : 'retire'),
    })
    this.#requests = new BatchedRequests<MysqlConnection, Request, Reply>({
      store: 'mysql',
      engine: 'MySQL',
      connections: this.#connections,
      largest: 256,
      send: (connection, requests, sent) => carryOut(connection, table, requests, sent),
      settle,
    })
    this.#pruning = new Pruning((after, most) =>
      this.#connections.run(connection => prune(connection, table, after, most)),
    )
  }

  async acquire(claim: Claim, signal: AbortSignal): Promise<Grant | Busy> {
    const answer = await this.#put(claim, claim.ttl, signal, name => name.acquire(claim))
    if (answer === REFUSED) reportStale('mysql', 'withdrawn')
    if (answer.held) this.#pruning.granted(claim.name)
    return answer
  }

  renew(claim: Claim, signal: AbortSignal): Promise<Grant | undefined> {
    return this.#put({ name: claim.name }, claim.ttl, signal, name => name.renew(claim))
  }

  annotate(claim: Claim, signal: AbortSignal): Promise<boolean> {
    return this.#put({ name: claim.name }, claim.ttl, signal, name => name.annotate(claim))
  }

  release(key: ClaimKey, signal: AbortSignal): Promise<'released' | 'gone'> {
    let first: 'released' | 'gone' | undefined
    let hasLeft = false
    return this.#put(key, undefined, signal, (name, mayBeDone) => {
      const isWaiting = name.isWaiting(key)
      const answer = name.release(key, hasLeft)
      hasLeft ||= isWaiting
      first ??= answer
      if (first !== answer && mayBeDone) throw unclear(key.name)
      return answer
    })
  }

  async *inspect(query: Query, signal: AbortSignal): AsyncIterable<LeaseRecord> {
    const table = this.#table
    for (let last = ''; ; ) {
      signal.throwIfAborted()
      if ('prefix' in query) query.sent?.(2)
      const found = await this.#connections.run(async connection => {
        const page = 'prefix' in query ? await list(connection, table, [query.prefix, last, PAGE]) : [query.name]
        return page.length > 0 ? read(connection, table, page) : []
      })
      for (const name of found) yield* name.records()
      last = found.at(-1)?.name ?? ''
      if ('name' in query || found.length < PAGE) return
    }
  }

  break(name: string, parameters: BreakParameters, signal: AbortSignal): Promise<bigint | undefined> {
    let of: readonly number[] | undefined // after the first decision, these are the tokens of the leases that it ended
    return this.#put({ name }, Number.POSITIVE_INFINITY, signal, (found, mayBeDone) => {
      const broken = found.break(parameters, of)
      if (!broken && of?.length && mayBeDone) throw unclear(name)
      of = broken?.of ?? [] // a retry must not end a later lease
      return broken?.token
    })
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#connections.close()
  }

  /** Sends a request. `ttl`: the request is stale after a third of it, at most 5 s. `undefined`: it is never stale. */
  #put<Answer>(
    { name, id }: { readonly name: string; readonly id?: string },
    ttl: number | undefined,
    signal: AbortSignal,
    decide: Decide<Answer>,
  ): Promise<Answer> {
    const limit = ttl === undefined ? Number.POSITIVE_INFINITY : requestLimit(ttl)
    const now = performance.now()
    const [until, patientUntil] = [now + limit, now + Math.min(LOCK_PATIENCE, 0.8 * limit)]
    return this.#requests.put({ name, id, until, patientUntil, tries: 0, mayBeDone: false, signal, decide })
  }
}

/**
 * Reads the names, decides here, and writes the changes unless another client has changed the rows since. No lock lasts
 * longer than a statement, so a process that is paused between two statements blocks no other.
 */
async function carryOut(
  connection: MysqlConnection,
  table: string,
  requests: readonly Request[],
  sent: number,
): Promise<Reply> {
  const names = [...new Set(requests.map(({ name }) => name))].sort()
  const queued = requests.filter(({ id }) => id !== undefined)
  const line = { names: [...new Set(queued.map(({ name }) => name))], own: queued.map(({ id = '' }) => id) }
  const found = await read(connection, table, names, line)
  const received = performance.now()
  const byName = new Map(found.map(name => [name.name, name]))
  for (const name of found) name.roundTrip = 2 * (received - sent)
  const replies = requests.map(({ name, until, mayBeDone, decide, resolve, reject }) => {
    const state = byName.get(name) as Entry
    if (until <= received) return undefined
    // The server read its clock before `received`, so its limit is not later than ours.
    state.limit = state.now + until - received
    state.until = Math.min(state.until, state.limit)
    try {
      const answer = decide(state, mayBeDone)
      return () => resolve(answer)
    } catch (error) {
      return () => reject(error)
    }
  })
  const writes = found.filter(({ isChanged, joins, capped }) => isChanged || joins.size + capped.length > 0)
  const isAgain = requests.some(({ tries }) => tries > 0)
  const done = await write(connection, table, writes, isAgain)
  const undone = new Map(writes.filter(name => !done.has(name)).map(name => [name.name, name]))
  return requests.map((request, index) => {
    const { name, id = '', until } = request
    const isUndone = undone.get(name)
    if (isUndone?.isUnclear) request.mayBeDone = true
    // The server may have found that it was too late to write the position. Its limit counts from its read.
    const { joins, joinedAt } = byName.get(name) as Entry
    const mayBeLate = joins.has(id) && joinedAt - sent >= until - received
    return isUndone || mayBeLate ? undefined : replies[index]
  })
}

/** The error for an answer that would be wrong if an earlier attempt was carried out. */
function unclear(name: string): LeaseError {
  const what = `another client wrote ${JSON.stringify(name)} at the same time`
  return new LeaseError('OUTCOME_UNKNOWN', `${what}, so the outcome of this request is unknown: retry`)
}

function settle(request: Request, reply: Reply, index: number): 'stale' | number | undefined {
  const now = performance.now()
  const done = reply[index]
  if (!done && now >= request.until) return 'stale'
  request.tries += 1
  if (!done && now < request.patientUntil) return CONFLICT * Math.random() * Math.min(request.tries, MOST_TRIES)
  if (done) done()
  else if (request.mayBeDone) request.reject(unclear(request.name))
  else {
    // This does not say that nothing was done, because a position in the queue may have been written.
    const who = 'another transaction or a backup, or other clients wrote it each time'
    const message = `the row of ${JSON.stringify(request.name)} is locked by ${who}: retry`
    request.reject(new LeaseError('STORE_UNAVAILABLE', message))
  }
  return undefined
}

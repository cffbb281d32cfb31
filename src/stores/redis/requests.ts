import type { LeaseError } from '../../contract/errors.ts'
import { warn } from '../../contract/warnings.ts'
import { type BatchedRequest, BatchedRequests } from '../wire/batched-requests.ts'
import { Connections } from '../wire/connections.ts'
import type { RedisDriver, Wire } from './client.ts'
import { type Reply, type Request, ScriptConnection, type ScriptSetup } from './connection.ts'
import { Failures, isReply } from './failure.ts'
import { warnOfEviction } from './info.ts'
import { slotOf } from './keys.ts'

/** Reads the answer to one request. `now` is the server's time then, and `state` that of its `Reply`. */
export type Read<Value> = (answer: unknown, now: number, state: string) => Value

/** A request that waits for its answer. */
interface Pending extends Request, BatchedRequest {
  readonly read: Read<unknown>
}

/** A request for the script. `limit`: milliseconds after which it is stale. @default never */
export type ScriptRequest = Omit<Request, 'until'> & { readonly limit?: number | undefined }

export interface RequestsOptions extends ScriptSetup {
  /** A message for a waiter of this process came with an answer. */
  notified(message: string): void
  /** A call got no answer. Messages to waiters may be lost with it. */
  missing?(requests: readonly Request[]): void
  /** Requests now use another connection, because the previous one was given up. */
  replaced(): void
}

/** The largest number of requests in one call. Redis serves no other client for about 0.3 ms while it runs this many. */
export const LARGEST = 64

/**
 * Sends requests to the script of a Redis server, or of the nodes of a cluster. Requests that arrive while others are in
 * flight share the next call of the script. In a cluster only requests of the same hash slot share a call.
 */
export class Requests {
  readonly isCluster: boolean
  readonly #options: RequestsOptions
  readonly #failures: Failures
  readonly #connections: Connections<ScriptConnection>
  readonly #bySlot = new Map<number, BatchedRequests<ScriptConnection, Pending, Reply>>()

  constructor(driver: RedisDriver, options: RequestsOptions) {
    const failures = new Failures(driver)
    this.isCluster = driver.isCluster
    this.#options = options
    this.#failures = failures
    this.#connections = new Connections<ScriptConnection>({
      open: closing => ScriptConnection.open(driver, options, closing),
      failure: (error, connection) => failures.of(error, connection?.wire),
      judge: (error, { wire }) => failures.judge(error, wire),
      replaced: () => options.replaced(),
    })
  }

  /** Resolves to what `read` returns for the answer. Rejects with a `LeaseError`. */
  put<Value>(request: ScriptRequest, signal: AbortSignal, read: Read<Value>): Promise<Value> {
    const { verb, key, id, parameters, limit } = request
    const until = limit && performance.now() + limit
    const slot = this.isCluster ? slotOf(key) : 0
    const requests = this.#bySlot.get(slot) ?? this.#openSlot(slot)
    return requests.put({ verb, key, id, parameters, until, signal, read })
  }

  /** Sends what the script cannot do. Rejects with a `LeaseError`. */
  run<Answer>(work: (wire: Wire) => Promise<Answer>): Promise<Answer> {
    return this.#connections.run(({ wire }) => work(wire))
  }

  /** The error for the caller of a request for this key that got this answer. */
  failure(error: unknown, key?: string): LeaseError {
    return this.#failures.answered(error, key)
  }

  close(): void {
    this.#connections.close()
  }

  #openSlot(slot: number): BatchedRequests<ScriptConnection, Pending, Reply> {
    const requests = new BatchedRequests<ScriptConnection, Pending, Reply>({
      store: 'redis',
      engine: 'Redis',
      connections: this.#connections,
      largest: LARGEST,
      send: (connection, requests, sent) =>
        connection.carryOut(requests, sent).then(
          reply => this.#learn(connection, reply, requests),
          error => {
            if (!isReply(error)) this.#options.missing?.(requests)
            throw error
          },
        ),
      settle: (request, reply, index) => this.#settle(request, reply, index),
    })
    this.#bySlot.set(slot, requests)
    return requests
  }

  #learn(connection: ScriptConnection, reply: Reply, requests: readonly Request[]): Reply {
    // The callers of this answer run first. If one of them releases the name, the waiter asks in the same call.
    if (reply.woken)
      setImmediate(() => {
        for (const message of reply.woken.split(',')) this.#options.notified(message)
      })
    if (reply.refused !== undefined) warnOfNotifications(reply.refused)
    if (reply.failed !== undefined) {
      this.#options.missing?.(requests)
      this.#connections.doubt(connection, reply.failed)
      return reply
    }
    const refusal = reply.answers.find(isRefusal)
    if (refusal !== undefined) this.#connections.doubt(connection, refusal)
    // A replica or any node of a cluster may also answer a read.
    else if (!this.#failures.served && requests.some(({ verb }) => verb !== 'inspect')) {
      this.#failures.served = true
      void warnOfEviction(connection.wire)
    }
    return reply
  }

  #settle(request: Pending, reply: Reply, index: number): 'stale' | undefined {
    const { now, state, failed } = reply.alone?.[index] ?? reply
    const value = reply.answers[index]
    if (value === 'late') return 'stale'
    if (failed !== undefined) request.reject(this.failure(failed, request.key))
    else if (isRefusal(value)) request.reject(this.failure(value.slice(1), request.key))
    else {
      try {
        request.resolve(request.read(value, now, state))
      } catch (error) {
        request.reject(error)
      }
    }
    return undefined
  }
}

/** Warns that waiters of other processes are not notified of releases. They still ask again within a third of their ttl. */
function warnOfNotifications(refused: string): void {
  warn(
    'HOLDFAST_WAKES',
    `Redis refuses to notify waiters, so each may wait up to a third of its ttl longer: ${refused}. Permit PUBLISH in ` +
      'scripts on the channels PREFIX:wake:*.',
  )
}

/** Is it the error of a request that failed alone? */
function isRefusal(answer: unknown): answer is string {
  return typeof answer === 'string' && answer.startsWith('!')
}

import { LeaseError } from '../../contract/errors.ts'
import { events } from '../../contract/events.ts'
import type { LeaseEvents } from '../../contract/lease-events.ts'
import { Batch, isWanted } from './batch.ts'
import type { Connection } from './connection.ts'
import type { Connections } from './connections.ts'

/** One request to a server. A store adds the fields that it writes. */
export interface BatchedRequest {
  /**
   * The time when the request becomes stale, by `performance.now()`. `undefined`: it is harmless however late it arrives.
   */
  readonly until: number | undefined
  /** A signal that aborts when nobody waits for the request any more. */
  readonly signal: AbortSignal
  resolve(answer: unknown): void
  reject(reason: unknown): void
}

export interface BatchedRequestsOptions<Opened extends Connection, Own extends BatchedRequest, Reply> {
  /** The name of the store for events and messages: `redis` and `Redis`. */
  readonly store: string
  readonly engine: string
  readonly connections: Connections<Opened>
  /** The largest number of requests in one round trip. */
  readonly largest: number
  /** Fewer requests than this are not split between two round trips. @default 16 */
  readonly worthSending?: number | undefined
  /** Carries out some requests in one round trip, which began at `sent`. Rejects if their outcome is unknown. */
  readonly send: (connection: Opened, requests: readonly Own[], sent: number) => Promise<Reply>
  /**
   * Settles one request with the reply. Returns `stale` if the server refused it as stale. Returns `locked` if the server
   * did nothing because another transaction was in the way: such a request is retried soon, or after the returned number of
   * milliseconds.
   */
  readonly settle: (request: Own, reply: Reply, index: number) => 'stale' | 'locked' | number | undefined
}

/** Milliseconds after which a request that found its row locked is retried. */
const LOCKED = 5

/** The server refused a stale request. This copy did nothing, but an earlier one may have been carried out. */
export class StaleRequest extends LeaseError<'OUTCOME_UNKNOWN'> {
  constructor(engine: string) {
    super('OUTCOME_UNKNOWN', `the request reached ${engine} too late and was refused`)
  }
}

/** Reports that a server refused a stale request, or one of a withdrawn claim. */
export function reportStale(store: string, reason: LeaseEvents['stale_request_refused']['reason']): void {
  events.stale_request_refused.publish({ store, reason })
}

/**
 * Sends requests to a server. Requests that arrive while others are in flight share the next round trip. If a wrong
 * estimate of the server's clock caused a request to be refused as stale although it has time left, it is retried at once.
 */
export class BatchedRequests<Opened extends Connection, Own extends BatchedRequest, Reply> {
  readonly #options: BatchedRequestsOptions<Opened, Own, Reply>
  readonly #batch: Batch<Own>

  constructor(options: BatchedRequestsOptions<Opened, Own, Reply>) {
    this.#options = options
    const { largest: limit, worthSending } = options
    this.#batch = new Batch({ limit, worthSending, send: (requests, next) => this.#send(requests, next) })
  }

  /** Sends a request. Resolves as the store settles it. Rejects with a `LeaseError`. */
  put<Answer>(request: Omit<Own, 'resolve' | 'reject'>): Promise<Answer> {
    return new Promise((resolve, reject) => this.#batch.add({ ...request, resolve, reject } as unknown as Own))
  }

  /** Sends a batch. The next batch may be sent when this one is answered, or when the server is unresponsive. */
  #send(batch: readonly Own[], next: () => void): void {
    const { connections, send } = this.#options
    let requests = batch
    let isOver = false
    const leave = (): void => {
      if (!isOver) next()
      isOver = true
    }
    const work = (connection: Opened, sent: number): Promise<Reply> => send(connection, requests, sent)
    const onOpened = (): void => {
      requests = requests.filter(isWanted)
      if (requests.length === 0) throw batch[0]?.signal.reason
    }
    connections.run(work, { patience: patienceOf(batch), onUnresponsive: leave, onOpened }).then(
      reply => {
        leave()
        for (let index = 0; index < requests.length; index++) this.#settle(requests[index] as Own, reply, index)
      },
      error => {
        leave()
        for (const request of batch) request.reject(error)
      },
    )
  }

  #settle(request: Own, reply: Reply, index: number): void {
    const { store, engine, settle } = this.#options
    const refused = settle(request, reply, index)
    const pause = refused === 'locked' ? LOCKED : refused
    if (typeof pause === 'number') setTimeout(() => this.#batch.add(request), pause)
    if (refused !== 'stale') return
    reportStale(store, 'late')
    if (performance.now() < (request.until ?? 0)) this.#batch.add(request)
    else request.reject(new StaleRequest(engine))
  }
}

/**
 * Half of the milliseconds until the first request is stale, so that the caller may ask again in the other half.
 * `undefined`: none becomes stale.
 */
function patienceOf(requests: readonly BatchedRequest[]): number | undefined {
  let first: number | undefined
  for (const { until } of requests) if (until !== undefined) first = Math.min(until, first ?? until)
  return first === undefined ? undefined : (first - performance.now()) / 2
}

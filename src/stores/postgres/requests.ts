import { LeaseError } from '../../contract/errors.ts'
import { LONGEST_REQUEST, requestLimit } from '../../contract/time.ts'
import { Batch } from '../shared/batch.ts'
import type { Connection } from '../shared/connection.ts'
import { tellGhost } from '../shared/ghost.ts'
import type { Link } from './client.ts'
import { exhausted } from './exhausted.ts'
import type { Session } from './session.ts'

/** What a function answered to one request: a word, and what belongs to it. */
export type Answer = readonly [kind: string, ...rest: unknown[]]

/** Puts some requests, as JSON, to the server, which answers `[time, answer …]` as JSON. */
type Ask = (link: Link, orders: string) => Promise<unknown>

interface Request {
  readonly order: object
  /** When it is refused, by `performance.now()`; `undefined`: it does no harm however late. */
  readonly until: number | undefined
  /** Until when it is asked again while its row is locked. */
  readonly patientUntil: number
  readonly signal: AbortSignal
  resolve(answer: Answer): void
  reject(reason: unknown): void
}

export interface RequestOptions {
  /** How long the claim lasts; the server refuses its request after a third of that. @default it is never refused */
  readonly ttl?: number | undefined
  readonly signal: AbortSignal
}

/**
 * Milliseconds after which what found its row locked is asked again, and for how long. Whoever wants a name that was given
 * to another meanwhile has its row locked until the end of that transaction, which is a write to the disk.
 */
const [LOCKED, PATIENCE] = [5, 1_000]

/** PostgreSQL takes 7 to 10 us for each, and nobody else waits for it meanwhile; a statement takes as much as thirty. */
const [WORTH_SENDING, LARGEST] = [32, 256]

/**
 * Puts requests of one kind to the server: those that come while others are under way share the next statement. What
 * was refused as late because of a wrong idea of the server's time is asked again at once, and soon what another
 * transaction was in the way of.
 */
export class Requests {
  readonly #connection: Connection<Session>
  readonly #ask: Ask
  readonly #batch: Batch<Request>

  constructor(connection: Connection<Session>, ask: Ask) {
    this.#connection = connection
    this.#ask = ask
    this.#batch = new Batch({
      limit: LARGEST,
      worthSending: WORTH_SENDING,
      send: (requests, next) => this.#send(requests, next),
    })
  }

  /** Rejects with a `LeaseError`. */
  put(order: object, { ttl, signal }: RequestOptions): Promise<Answer> {
    return new Promise((resolve, reject) => {
      const now = performance.now()
      const until = ttl === undefined ? undefined : now + requestLimit(ttl)
      const patientUntil = now + Math.min(PATIENCE, requestLimit(ttl ?? Number.POSITIVE_INFINITY) / 2)
      this.#batch.add({ order, until, patientUntil, signal, resolve, reject })
    })
  }

  /** The next may leave when this one is answered, or when that takes long. */
  #send(requests: readonly Request[], next: () => void): void {
    let isOver = false
    const leave = (): void => {
      if (!isOver) next()
      isOver = true
    }
    const now = performance.now()
    const patience = Math.min(...requests.map(({ until = now + LONGEST_REQUEST }) => until)) - now
    this.#connection
      .carryOut(
        async (session, sent) => {
          const orders = requests.map(({ order, until }, i) => ({
            i,
            ...order,
            ...(until !== undefined && { until: session.serverTime(until) }),
          }))
          const text = await this.#ask(session.link, JSON.stringify(orders))
          const [time, answers] = JSON.parse(String(text)) as [number, Answer[]]
          if (answers?.length !== requests.length)
            throw new Error(`PostgreSQL gave ${answers?.length} answers to ${requests.length} requests`)
          session.learn(time, sent)
          return answers
        },
        { patience, onSilent: leave },
      )
      .then(
        answers => {
          leave()
          for (let index = 0; index < requests.length; index++)
            this.#settle(requests[index] as Request, answers[index] as Answer)
        },
        error => {
          leave()
          for (const request of requests) request.reject(error)
        },
      )
  }

  #settle(request: Request, answer: Answer): void {
    const [kind] = answer
    if (kind === 'skipped' && performance.now() < request.patientUntil)
      setTimeout(() => this.#batch.add(request), LOCKED)
    else if (kind === 'late') {
      tellGhost('postgres', 'late')
      if (performance.now() < (request.until ?? 0)) this.#batch.add(request)
      // This copy did nothing, but who knows of the others.
      else request.reject(new LeaseError('OUTCOME_UNKNOWN', 'the request reached PostgreSQL too late and was refused'))
    } else if (kind === 'exhausted') request.reject(exhausted())
    else request.resolve(answer)
  }
}

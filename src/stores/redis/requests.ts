import { LeaseError } from '../../contract/errors.ts'
import { Batch } from '../shared/batch.ts'
import { tellGhost } from '../shared/ghost.ts'
import type { Connection } from './connection.ts'
import { slotOf } from './keys.ts'
import type { Order, Reply } from './session.ts'

/** What the server answered, and its time then. */
export interface Answer {
  readonly now: number
  /** Of a `Reply`. */
  readonly state: string
  readonly value: unknown
}

/** What is asked of the script. */
export type Question = Omit<Order, 'until'>

interface Request extends Order {
  readonly signal: AbortSignal
  resolve(answer: Answer): void
  reject(reason: unknown): void
}

export interface RequestOptions {
  /** Milliseconds after which the server refuses the request. @default it is never refused */
  readonly limit?: number | undefined
  readonly signal: AbortSignal
}

/** The server is well, and this copy of the request did nothing; but who knows of others. */
export class TooLate extends LeaseError {
  constructor() {
    super('OUTCOME_UNKNOWN', 'the request reached Redis too late and was refused')
  }
}

/** Redis serves nobody else for about 0.3 ms while it works on so many. */
const LARGEST = 64

/**
 * Puts requests to the server: those that come while others are under way share the next, in a cluster with those of
 * the same slot. What was refused as late because of a wrong idea of the server's time is asked again at once.
 */
export class Requests {
  readonly #connection: Connection
  readonly #isCluster: boolean
  readonly #lanes = new Map<number, Batch<Request>>()

  constructor(connection: Connection, isCluster: boolean) {
    this.#connection = connection
    this.#isCluster = isCluster
  }

  /** Rejects with a `LeaseError`. */
  put({ key, id, verb, wishes }: Question, { limit, signal }: RequestOptions): Promise<Answer> {
    return new Promise((resolve, reject) => {
      const until = limit && performance.now() + limit
      this.#add({ key, id, verb, wishes, until, signal, resolve, reject })
    })
  }

  #add(request: Request): void {
    const slot = this.#isCluster ? slotOf(request.key) : 0
    let lane = this.#lanes.get(slot)
    if (!lane) {
      lane = new Batch({ limit: LARGEST, send: (requests, next) => this.#send(requests, next) })
      this.#lanes.set(slot, lane)
    }
    lane.add(request)
  }

  /** The next may leave when this one is answered, or when that takes long. */
  #send(requests: readonly Request[], next: () => void): void {
    let isOver = false
    const leave = (): void => {
      if (!isOver) next()
      isOver = true
    }
    this.#connection.carryOut(requests, leave).then(
      reply => {
        leave()
        for (let index = 0; index < requests.length; index++) this.#settle(requests[index] as Request, reply, index)
      },
      error => {
        leave()
        for (const request of requests) request.reject(error)
      },
    )
  }

  #settle(request: Request, { now, state, answers }: Reply, index: number): void {
    const value = answers[index]
    const answer = Array.isArray(value) ? '' : String(value)
    if (answer.startsWith('!')) request.reject(this.#connection.failure(answer.slice(1), request.key))
    else if (answer !== 'late') request.resolve({ now, state, value })
    else {
      tellGhost('redis', 'late')
      if (performance.now() < (request.until ?? 0)) this.#add(request)
      else request.reject(new TooLate())
    }
  }
}

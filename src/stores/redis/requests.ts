import { Batch } from '../../batch.ts'
import { LeaseError } from '../../errors.ts'
import { requestLimit } from '../../time.ts'
import type { Connection } from './connection.ts'
import { slotOf } from './keys.ts'
import type { Order } from './session.ts'

/** What the server answered, and its time then. */
export interface Answer {
  readonly now: number
  readonly value: unknown
}

interface Request extends Order {
  readonly signal: AbortSignal
  /** Milliseconds without an answer after which another connection is tried. */
  readonly patience: number
  resolve(answer: Answer): void
  reject(error: unknown): void
}

export interface RequestOptions {
  /** How long the claim lasts; the server refuses its request after a third of that. @default it is never refused */
  readonly ttl?: number | undefined
  readonly signal: AbortSignal
}

// 64 requests take Redis about 0.6 ms; that is for how long it serves nobody else.
const LARGEST = 64

/** A server that stands still for less than this is not worth a second connection; milliseconds. */
const SHORTEST_PATIENCE = 100
const PATIENCE = 1_000

const done: PromiseSettledResult<void> = { status: 'fulfilled', value: undefined }

/**
 * Puts requests to the server: those that come while one is under way share the next, in a cluster with those of the
 * same slot. What was refused as late by a wrong idea of the server's time is asked again at once.
 */
export class Requests {
  readonly #connection: Connection
  readonly #isCluster: boolean
  readonly #lanes = new Map<number, Batch<Request, void>>()

  constructor(connection: Connection, isCluster: boolean) {
    this.#connection = connection
    this.#isCluster = isCluster
  }

  /** `text` makes the request for a deadline in the server's time. Rejects with a `LeaseError`. */
  put(key: string, text: (deadline: number) => string, { ttl, signal }: RequestOptions): Promise<Answer> {
    const limit = ttl === undefined ? undefined : requestLimit(ttl)
    return new Promise((resolve, reject) => {
      this.#add({
        key,
        text,
        signal,
        until: limit === undefined ? undefined : performance.now() + limit,
        patience: Math.max(Math.min(limit ?? PATIENCE, PATIENCE), SHORTEST_PATIENCE),
        resolve,
        reject,
      })
    })
  }

  #add(request: Request): void {
    const slot = this.#isCluster ? slotOf(request.key) : 0
    let lane = this.#lanes.get(slot)
    if (!lane) {
      lane = new Batch(LARGEST, requests => this.#send(requests))
      this.#lanes.set(slot, lane)
    }
    lane.add(request, request.signal).catch(request.reject)
  }

  /** Resolves when the next ones may go: after the answer, or without one when that takes long. */
  async #send(requests: Request[]): Promise<PromiseSettledResult<void>[]> {
    const patience = Math.min(...requests.map(request => request.patience))
    await new Promise<void>(free => void this.#exchange(requests, patience, free).then(free))
    return requests.map(() => done)
  }

  async #exchange(requests: readonly Request[], patience: number, onSilent: () => void): Promise<void> {
    try {
      const { now, answers } = await this.#connection.carryOut(requests, patience, onSilent)
      for (const [index, request] of requests.entries()) this.#settle(request, now, answers[index])
    } catch (error) {
      for (const request of requests) request.reject(error)
    }
  }

  #settle(request: Request, now: number, value: unknown): void {
    const text = Buffer.isBuffer(value) ? value.toString() : value
    if (text === 'late') {
      // Refused, not carried out; but an earlier copy of it may have been, so it is not known that it never will be.
      if (performance.now() < (request.until ?? 0)) this.#add(request)
      else request.reject(new LeaseError('OUTCOME_UNKNOWN', 'the request reached Redis too late and was refused'))
    } else if (typeof text === 'string' && text.startsWith('!')) {
      request.reject(this.#connection.failure(text.slice(1)))
    } else request.resolve({ now, value: text })
  }
}

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
}

type Outcome = PromiseSettledResult<Answer | Promise<Answer>>

export interface RequestOptions {
  /** How long the claim lasts; the server refuses its request after a third of that. @default it is never refused */
  readonly ttl?: number | undefined
  readonly signal: AbortSignal
}

/** Redis serves nobody else for about 0.5 ms while it works on so many. */
const LARGEST = 64

/**
 * Puts requests to the server: those that come while one is under way share the next, in a cluster with those of the
 * same slot. What was refused as late because of a wrong idea of the server's time is asked again at once.
 */
export class Requests {
  readonly #connection: Connection
  readonly #isCluster: boolean
  readonly #lanes = new Map<number, Batch<Request, Answer>>()

  constructor(connection: Connection, isCluster: boolean) {
    this.#connection = connection
    this.#isCluster = isCluster
  }

  /** `text` makes the request for a deadline in the server's time. Rejects with a `LeaseError`. */
  put(key: string, text: (deadline: number) => string, { ttl, signal }: RequestOptions): Promise<Answer> {
    const limit = ttl === undefined ? undefined : requestLimit(ttl)
    return this.#add({ key, text, signal, until: limit && performance.now() + limit })
  }

  #add(request: Request): Promise<Answer> {
    const slot = this.#isCluster ? slotOf(request.key) : 0
    let lane = this.#lanes.get(slot)
    if (!lane) {
      // A promise as the answer of a request is as good as what it resolves to.
      lane = new Batch(LARGEST, requests => this.#send(requests) as Promise<PromiseSettledResult<Answer>[]>)
      this.#lanes.set(slot, lane)
    }
    return lane.add(request, request.signal)
  }

  /** Answers in time, or as soon as that takes long with promises, so that the next need not wait. */
  #send(requests: readonly Request[]): Promise<Outcome[]> {
    return new Promise((resolve, reject) => {
      const exchange = this.#exchange(requests, () => {
        resolve(requests.map((_, index) => fulfilled(exchange.then(outcomes => settled(outcomes[index])))))
      })
      exchange.then(resolve, reject)
    })
  }

  async #exchange(requests: readonly Request[], onSilent: () => void): Promise<Outcome[]> {
    const { now, answers } = await this.#connection.carryOut(requests, onSilent)
    return requests.map((request, index) => this.#outcome(request, now, answers[index]))
  }

  #outcome(request: Request, now: number, value: unknown): Outcome {
    const answer = Array.isArray(value) ? '' : String(value)
    if (answer.startsWith('!')) return rejected(this.#connection.failure(answer.slice(1)))
    if (answer !== 'late') return fulfilled({ now, value })
    if (performance.now() < (request.until ?? 0)) return fulfilled(this.#add(request))
    // This copy did nothing, but who knows of the others.
    return rejected(new LeaseError('OUTCOME_UNKNOWN', 'the request reached Redis too late and was refused'))
  }
}

function fulfilled(value: Answer | Promise<Answer>): Outcome {
  return { status: 'fulfilled', value }
}

function rejected(reason: LeaseError): Outcome {
  return { status: 'rejected', reason }
}

function settled(outcome: Outcome | undefined): Answer | Promise<Answer> {
  if (outcome?.status === 'fulfilled') return outcome.value
  throw outcome?.reason
}

import { LeaseError } from '../../contract/errors.ts'
import { Batch } from '../wire/batch.ts'
import { afterReads, NEVER, patienceFor } from '../wire/timeouts.ts'
import { isDuplicate, isLeaseMissing, isRepetition } from './failure.ts'

interface Entry<Asked, Answer> {
  readonly asked: Asked
  limit: number
  readonly signal: AbortSignal
  readonly promise: Promise<Answer>
  readonly resolve: (answer: Answer) => void
  readonly reject: (error: unknown) => void
}

/**
 * Sends some of them in one request, and resolves to the answer to each. `wasRepeated`: an earlier request that contained
 * them may have been processed.
 */
type Send<Asked, Answer> = (
  all: readonly Asked[],
  limit: number,
  wasRepeated: boolean,
) => Promise<readonly (Answer | undefined)[]>

/**
 * Joins what is asked in one turn of the event loop, or while two requests are in flight. A text that is asked for twice
 * shares an answer.
 */
export class Batched<Asked, Answer> {
  readonly #request: Send<Asked, Answer>
  readonly #batch: Batch<Entry<Asked, Answer>>
  /** What waits to be sent, and cannot be cancelled. */
  readonly #waiting = new Map<Asked, Entry<Asked, Answer>>()

  /** `most`: the largest number in one request. */
  constructor(most: number, request: Send<Asked, Answer>) {
    this.#request = request
    this.#batch = new Batch({ limit: most, send: (entries, next) => this.#start(entries, next) })
  }

  /** Rejects like `Gateway.ask`, or with the reason of a `signal` that aborts before this is sent. */
  ask(asked: Asked, limit: number, signal: AbortSignal = NEVER): Promise<Answer> {
    let entry = this.#waiting.get(asked)
    if (!entry) {
      entry = { asked, limit, signal, ...Promise.withResolvers<Answer>() }
      if (signal === NEVER) this.#waiting.set(asked, entry)
      this.#batch.add(entry)
    }
    entry.limit = Math.max(entry.limit, limit)
    return entry.promise
  }

  /** The next batch may be sent once this one is answered, or its endpoint does not respond. */
  #start(entries: readonly Entry<Asked, Answer>[], next: () => void): void {
    for (const { asked } of entries) this.#waiting.delete(asked)
    const unresponsive = Promise.withResolvers<void>()
    const patience = patienceFor(Math.min(...entries.map(({ limit }) => limit)) / 3)
    const stopTimeout = afterReads(patience, unresponsive.resolve)
    void Promise.race([this.#send(entries), unresponsive.promise]).finally(() => {
      stopTimeout()
      next()
    })
  }

  async #send(entries: readonly Entry<Asked, Answer>[], wasRepeated = false): Promise<void> {
    try {
      // Each caller has its own limit, so this limit is that of the caller that waits longest.
      const limit = Math.max(...entries.map(entry => entry.limit))
      const all = entries.map(({ asked }) => asked)
      const answers = await this.#request(all, limit, wasRepeated)
      for (const [index, entry] of entries.entries()) {
        const answer = answers[index]
        if (answer !== undefined) entry.resolve(answer)
        else if (entries.length > 1) void this.#send([entry], wasRepeated)
        else entry.reject(new LeaseError('OUTCOME_UNKNOWN', 'etcd answered only a part of the request'))
      }
    } catch (error) {
      // A lease has ended, or two transactions change the same key. So etcd did nothing for any of them.
      if (entries.length > 1 && (isLeaseMissing(error) || isDuplicate(error)))
        await Promise.all(entries.map(entry => this.#send([entry], isRepetition(error))))
      else for (const { reject } of entries) reject(error)
    }
  }
}

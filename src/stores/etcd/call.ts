import type { LeaseError } from '../../contract/errors.ts'
import { LONGEST_REQUEST } from '../../contract/time.ts'
import type { Listener } from './endpoint.ts'
import { failure, isFinal, Refusal } from './failure.ts'

/** Milliseconds of silence after which the next endpoint is asked too, unless the request has less time. */
const PATIENCE = 1_000
/** A server that stands still for less is not worth it. */
const SHORTEST_PATIENCE = 100

interface Attempt {
  readonly at: number
  readonly giveUp: () => void
  isStarted?: boolean
}

export interface Course {
  /** Sends a copy to the next endpoint; `undefined` if all have had theirs. */
  next(listener: Listener): Attempt | undefined
  answered(at: number, messages: readonly unknown[]): void
  failed(error: LeaseError): void
  silent(at: number): void
}

/** One request and its copies. The first answer counts, or the last failure. */
export class Call {
  readonly #limit: number
  readonly #course: Course
  readonly #attempts = new Set<Attempt>()
  #isRepeated = false
  #hasBegun = false
  #isOver = false
  /** The least certain failure of the copies: one that may have been carried out, else one that was sent. */
  #failure: LeaseError | undefined
  #patience: NodeJS.Timeout | undefined
  #timeout: NodeJS.Timeout | undefined

  constructor(limit: number, course: Course) {
    this.#limit = limit
    this.#course = course
  }

  start(): void {
    this.#endWithin(LONGEST_REQUEST + this.#limit)
    this.#next()
  }

  /** Nothing was sent there yet, so it goes elsewhere. */
  leave(at: number): void {
    for (const attempt of this.#attempts) {
      if (attempt.at !== at || attempt.isStarted || !this.#next()) continue
      this.#attempts.delete(attempt)
      attempt.giveUp()
      return
    }
  }

  fail(error: LeaseError): void {
    if (this.#isOver) return
    const attempts = [...this.#attempts]
    this.#end()
    for (const { at, giveUp } of attempts) {
      giveUp()
      this.#course.silent(at)
    }
    this.#course.failed(error)
  }

  #endWithin(limit: number): void {
    clearTimeout(this.#timeout)
    const error = failure(new Error(`nothing within ${Math.round(limit)} ms`), true)
    // What came in while the event loop was blocked is read before it counts as missing.
    this.#timeout = setTimeout(() => void setImmediate(() => this.fail(error)), limit).unref()
  }

  #next(): boolean {
    let attempt: Attempt | undefined
    const messages: unknown[] = []
    attempt = this.#course.next({
      onStart: () => this.#begin(attempt),
      onMessage: message => void messages.push(message),
      onEnd: () => this.#answer(attempt, messages),
      onFailure: (error, sent) => this.#bear(attempt, error, sent),
    })
    if (!attempt) return false
    this.#attempts.add(attempt)
    return true
  }

  /** Time counts from when it leaves: many that wait for a connection say nothing about the server. */
  #begin(attempt: Attempt | undefined): void {
    if (this.#isOver || !attempt || attempt.isStarted) return
    attempt.isStarted = true
    if (!this.#hasBegun) this.#endWithin(this.#limit)
    this.#hasBegun = true
    const onSilence = (): void => {
      if (this.#isOver) return
      this.#course.silent(attempt.at)
      if (this.#next()) this.#isRepeated = true
    }
    const patience = Math.max(Math.min(PATIENCE, this.#limit / 3), SHORTEST_PATIENCE)
    clearTimeout(this.#patience)
    this.#patience = setTimeout(onSilence, patience).unref()
  }

  #answer(attempt: Attempt | undefined, messages: readonly unknown[]): void {
    if (this.#isOver || !attempt) return
    this.#attempts.delete(attempt)
    const left = [...this.#attempts]
    this.#end()
    for (const { giveUp } of left) giveUp()
    this.#course.answered(attempt.at, messages)
  }

  #bear(attempt: Attempt | undefined, error: Error, sent: boolean): void {
    if (this.#isOver || !attempt) return
    this.#attempts.delete(attempt)
    const failed = failure(error, sent)
    if (!this.#failure || (sent && this.#failure.code !== 'OUTCOME_UNKNOWN')) this.#failure = failed
    if (!isFinal(error)) {
      if (sent) this.#isRepeated = true
      this.#course.silent(attempt.at)
      if (this.#next() || this.#attempts.size > 0) return
    }
    if (error instanceof Refusal) error.isRepeated = this.#isRepeated
    this.fail(isFinal(error) ? failed : this.#failure)
  }

  #end(): void {
    this.#isOver = true
    this.#attempts.clear()
    clearTimeout(this.#patience)
    clearTimeout(this.#timeout)
  }
}

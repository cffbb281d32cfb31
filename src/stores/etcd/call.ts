import type { LeaseError } from '../../contract/errors.ts'
import { LONGEST_REQUEST } from '../../contract/time.ts'
import { afterReads, patienceFor } from '../wire/timeouts.ts'
import type { Listener } from './endpoint.ts'
import { failure, isFinal, Refusal } from './failure.ts'

interface Attempt {
  readonly at: number
  readonly giveUp: () => void
  isStarted?: boolean
}

export interface Course {
  /** The next endpoint to send a copy to. `undefined`: all endpoints have had one. */
  next(listener: Listener): Attempt | undefined
  /** `isRepeated`: an earlier copy may have been processed, or may still be. */
  answered(at: number, messages: readonly unknown[], isRepeated: boolean): void
  failed(error: LeaseError): void
  silent(at: number): void
}

/** One request and its copies, each to another endpoint. The first answer counts, or else the last failure. */
export class Call {
  readonly #limit: number
  readonly #course: Course
  readonly #attempts = new Set<Attempt>()
  #isRepeated = false
  #hasBegun = false
  #isOver = false
  /** The failure that decides if all copies fail: that of a copy that may have been processed, if there is one. */
  #failure: LeaseError | undefined
  #stopWaiting: () => void = () => {}
  #stopTimeout: () => void = () => {}

  constructor(limit: number, course: Course) {
    this.#limit = limit
    this.#course = course
  }

  start(): void {
    this.#endWithin(LONGEST_REQUEST + this.#limit)
    this.#next()
  }

  /** Sends a copy that still waits for a connection to this endpoint elsewhere. */
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
    this.#stopTimeout()
    const giveUp = (): void => this.fail(failure(new Error(`nothing within ${Math.round(limit)} ms`), true))
    this.#stopTimeout = afterReads(limit, giveUp)
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

  /** The limit counts from when the request is sent: a wait for a free connection says nothing about the server. */
  #begin(attempt: Attempt | undefined): void {
    if (this.#isOver || !attempt || attempt.isStarted) return
    attempt.isStarted = true
    if (!this.#hasBegun) this.#endWithin(this.#limit)
    this.#hasBegun = true
    const tryNext = (): void => {
      if (this.#isOver) return
      this.#course.silent(attempt.at)
      if (this.#next()) this.#isRepeated = true
    }
    this.#stopWaiting()
    this.#stopWaiting = afterReads(patienceFor(this.#limit / 3), tryNext)
  }

  #answer(attempt: Attempt | undefined, messages: readonly unknown[]): void {
    if (this.#isOver || !attempt) return
    this.#attempts.delete(attempt)
    const left = [...this.#attempts]
    this.#end()
    for (const { giveUp } of left) giveUp()
    this.#course.answered(attempt.at, messages, this.#isRepeated)
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
    this.#stopWaiting()
    this.#stopTimeout()
  }
}

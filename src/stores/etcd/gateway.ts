import type { LeaseError } from '../../contract/errors.ts'
import { LONGEST_REQUEST } from '../../contract/time.ts'
import { closed } from '../shared/closed.ts'
import { type Address, Endpoint, type EtcdTls, type Listener } from './endpoint.ts'
import { failure, isAuthOff, isFinal, isTokenOld, passing, Refusal, senseless } from './failure.ts'
import { hasHeader, isAnswerTo, isRange, type RangeAnswer, type TxnAnswer } from './messages.ts'

export interface Access {
  readonly endpoints: readonly Address[]
  readonly tls?: EtcdTls | undefined
  readonly user?: string | undefined
  readonly password?: string | undefined
}

/** Milliseconds of silence after which the next endpoint is asked too, unless the request has less time. */
const PATIENCE = 1_000
/** A server that stands still for less is not worth it. */
const SHORTEST_PATIENCE = 100

/**
 * The JSON gateway of a cluster. Requests go to one endpoint until it fails or falls silent, then to the next: every
 * request may be repeated, since it names its claim, its lease or the revision that it means.
 */
export class Gateway {
  readonly #endpoints: readonly Endpoint[]
  readonly #user: { readonly name: string; readonly password: string } | undefined
  #token: Promise<string> | undefined
  /** Did a login ever succeed? */
  #isKnown = false
  /** Index of the endpoint that answered last. */
  #current = 0
  readonly #calls = new Set<Call>()
  readonly #streams = new Set<Stream>()
  #closed = false

  constructor({ endpoints, tls, user, password = '' }: Access) {
    this.#endpoints = endpoints.map(address => new Endpoint(address, tls))
    this.#user = user === undefined ? undefined : { name: user, password }
  }

  get isClosed(): boolean {
    return this.#closed
  }

  /**
   * Rejects with a `LeaseError` `limit` ms after the request was sent, or if it could not be sent for 5 s more. A malformed
   * answer is OUTCOME_UNKNOWN too.
   */
  async ask<Message>(path: string, body: object, limit: number = LONGEST_REQUEST): Promise<Message> {
    const [answer] = await this.call<Message>(path, JSON.stringify(body), limit)
    return answer as Message
  }

  async range(body: object, limit?: number): Promise<RangeAnswer> {
    const answer = await this.ask<RangeAnswer>('kv/range', body, limit)
    if (!isRange(answer)) throw senseless('kv/range')
    return answer
  }

  async txn(body: object, limit?: number): Promise<TxnAnswer> {
    const answer = await this.ask<TxnAnswer>('kv/txn', body, limit)
    if (!isAnswerTo(body, answer)) throw senseless('kv/txn')
    return answer
  }

  /** As `ask`, for requests of several messages, one after the other in the body. */
  async call<Message>(path: string, body: string, limit: number): Promise<readonly Message[]> {
    for (let isFirst = true; ; isFirst = false) {
      const token = this.#user && this.#logIn()
      try {
        const messages = await this.#send(path, body, limit, token && (await token))
        if (!messages.every(hasHeader)) throw senseless(path)
        this.#isKnown = true
        return messages as readonly Message[]
      } catch (error) {
        if (!token || !isFirst || !isTokenOld(error)) throw token && this.#isKnown ? passing(error) : error
        if (this.#token === token) this.#token = undefined
      }
    }
  }

  /** Opens an answer without an end; rejects as `ask` does if it cannot be opened. */
  async stream(path: string, body: object, listener: Listener): Promise<() => void> {
    const token = this.#user && (await this.#logIn())
    if (this.#closed) throw closed()
    const at = this.#current
    const endpoint = this.#endpoints[at] as Endpoint
    const end = (): void => {
      this.#streams.delete(stream)
      giveUp()
    }
    const ended = (error: Error, sent: boolean): void => {
      this.#streams.delete(stream)
      if (isTokenOld(error)) this.#token = undefined
      if (!isFinal(error)) this.#leave(at)
      listener.onFailure(error, sent)
    }
    const onEnd = (): void => ended(new Error('the stream ended'), true)
    const giveUp = endpoint.post(
      path,
      JSON.stringify(body),
      token,
      { onMessage: message => listener.onMessage(message), onEnd, onFailure: ended },
      true,
    )
    const stream: Stream = {
      at,
      fail() {
        end()
        listener.onFailure(new Error('the server is silent'), true)
      },
    }
    this.#streams.add(stream)
    return end
  }

  close(): void {
    if (this.#closed) return
    this.#closed = true
    for (const call of [...this.#calls]) call.fail(closed())
    for (const endpoint of this.#endpoints) endpoint.close()
  }

  /** Resolves to '' where the server has no users, as etcd's own client does. */
  #logIn(): Promise<string> {
    this.#token ??= this.#newToken().catch(error => {
      this.#token = undefined
      throw error
    })
    return this.#token
  }

  async #newToken(): Promise<string> {
    const path = 'auth/authenticate'
    try {
      const [answer] = await this.#send(path, JSON.stringify(this.#user), LONGEST_REQUEST, undefined)
      const { token } = Object(answer) as { token?: unknown }
      if (typeof token !== 'string') throw senseless(path)
      return token
    } catch (error) {
      if (isAuthOff(error)) return ''
      throw error
    }
  }

  #send(path: string, body: string, limit: number, token: string | undefined): Promise<readonly unknown[]> {
    if (this.#closed) return Promise.reject(closed())
    return new Promise((resolve, reject) => {
      const endpoints = this.#endpoints.map((_, index) => (this.#current + index) % this.#endpoints.length)
      const over = (): void => void this.#calls.delete(call)
      const call = new Call(limit, {
        next: listener => {
          const at = endpoints.shift()
          if (at === undefined) return undefined
          const giveUp = (this.#endpoints[at] as Endpoint).post(path, body, token, listener)
          return { at, giveUp }
        },
        answered: (at, messages) => {
          over()
          this.#current = at
          resolve(messages)
        },
        failed: error => {
          over()
          reject(error)
        },
        silent: at => this.#leave(at),
      })
      this.#calls.add(call)
      call.start()
    })
  }

  /** Asks another endpoint from now on, and hears nothing more from this one. */
  #leave(at: number): void {
    if (this.#current !== at || this.#closed || this.#endpoints.length === 1) return
    this.#current = (at + 1) % this.#endpoints.length
    for (const call of [...this.#calls]) call.leave(at)
    for (const stream of [...this.#streams]) if (stream.at === at) stream.fail()
  }
}

interface Stream {
  readonly at: number
  fail(): void
}

interface Attempt {
  readonly at: number
  readonly giveUp: () => void
  isStarted?: boolean
}

interface Course {
  /** Sends a copy to the next endpoint; `undefined` if all have had theirs. */
  next(listener: Listener): Attempt | undefined
  answered(at: number, messages: readonly unknown[]): void
  failed(error: LeaseError): void
  silent(at: number): void
}

/** One request and its copies. The first answer counts, or the last failure. */
class Call {
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

import type { LeaseError } from '../../errors.ts'
import { LONGEST_REQUEST } from '../../time.ts'
import { closed } from '../link/closed.ts'
import { type Address, Endpoint, type EtcdTls, type Listener } from './endpoint.ts'
import { failure, isAuthOff, isFinal, isTokenOld, Refusal } from './failure.ts'
import type { RangeAnswer, TxnAnswer } from './messages.ts'

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

  /** Rejects with a `LeaseError` `limit` ms after it left, or when it could not leave for 5 s more. */
  async ask<Message>(path: string, body: object, limit: number = LONGEST_REQUEST): Promise<Message> {
    const [answer] = await this.call<Message>(path, JSON.stringify(body), limit)
    return answer as Message
  }

  range(body: object, limit?: number): Promise<RangeAnswer> {
    return this.ask<RangeAnswer>('kv/range', body, limit)
  }

  txn(body: object, limit?: number): Promise<TxnAnswer> {
    return this.ask<TxnAnswer>('kv/txn', body, limit)
  }

  /** As `ask`, for requests of several messages, one after the other in the body. */
  async call<Message>(path: string, body: string, limit: number): Promise<readonly Message[]> {
    for (let isFirst = true; ; isFirst = false) {
      const token = this.#user && this.#logIn()
      try {
        return (await this.#send(path, body, limit, token && (await token))) as readonly Message[]
      } catch (error) {
        if (!token || !isFirst || !isTokenOld(error)) throw error
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
    this.#token ??= this.#send('auth/authenticate', JSON.stringify(this.#user), LONGEST_REQUEST, undefined).then(
      ([answer]) => (answer as { token: string }).token,
      error => {
        if (isAuthOff(error)) return ''
        this.#token = undefined
        throw error
      },
    )
    return this.#token
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
  /** Of the copies the most that is known: one that left may have been carried out. */
  #failure: { readonly error: Error; readonly sent: boolean } | undefined
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
    this.#failure = !this.#failure || sent ? { error, sent } : this.#failure
    if (!isFinal(error)) {
      if (sent) this.#isRepeated = true
      this.#course.silent(attempt.at)
      if (this.#next() || this.#attempts.size > 0) return
    }
    if (error instanceof Refusal) error.isRepeated = this.#isRepeated
    this.fail(failure(isFinal(error) ? error : this.#failure.error, this.#failure.sent))
  }

  #end(): void {
    this.#isOver = true
    this.#attempts.clear()
    clearTimeout(this.#patience)
    clearTimeout(this.#timeout)
  }
}

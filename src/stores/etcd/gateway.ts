import { LONGEST_REQUEST } from '../../contract/time.ts'
import { closed } from '../wire/failure.ts'
import { Call } from './call.ts'
import { type Address, Endpoint, type EtcdTls, type Listener } from './endpoint.ts'
import { isAuthOff, isFinal, isRepetition, isTokenOld, passing, senseless } from './failure.ts'
import { hasHeader, isAnswerTo, isRange, type RangeAnswer, type TxnAnswer } from './messages.ts'

export interface Access {
  readonly endpoints: readonly Address[]
  readonly tls?: EtcdTls | undefined
  readonly user?: string | undefined
  readonly password?: string | undefined
}

/**
 * The JSON gateway of a cluster. Requests go to one endpoint until it fails or stops responding, then to the next. Every
 * request may be repeated, because it contains its claim, its lease or the revision that it refers to.
 */
export class Gateway {
  readonly #endpoints: readonly Endpoint[]
  readonly #user: { readonly name: string; readonly password: string } | undefined
  #token: Promise<string> | undefined
  /** Has any login succeeded? */
  #isKnown = false
  /** The index of the endpoint that answered last. */
  #current = 0
  readonly #calls = new Set<Call>()
  readonly #streams = new Set<Stream>()
  #closed = false
  /** Milliseconds that the last request took, without the wait for a connection. */
  roundTrip = 0

  constructor({ endpoints, tls, user, password = '' }: Access) {
    this.#endpoints = endpoints.map(address => new Endpoint(address, tls))
    this.#user = user === undefined ? undefined : { name: user, password }
  }

  get isClosed(): boolean {
    return this.#closed
  }

  /**
   * Rejects with a `LeaseError` `limit` ms after the request was sent, or if it could not be sent within 5 s. A malformed
   * answer is OUTCOME_UNKNOWN.
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

  /** Like `ask`, with several messages in one body. */
  async call<Message>(path: string, body: string, limit: number): Promise<readonly Message[]> {
    let wasRepeated = false
    for (let isFirst = true; ; isFirst = false) {
      const token = this.#user && this.#logIn()
      try {
        const { messages, isRepeated } = await this.#send(path, body, limit, token && (await token))
        if (!messages.every(hasHeader)) throw senseless(path)
        this.#isKnown = true
        const all = messages as readonly Message[]
        return isRepeated || wasRepeated ? all.map(message => ({ ...message, isRepeated: true })) : all
      } catch (error) {
        wasRepeated ||= isRepetition(error)
        if (!token || !isFirst || !isTokenOld(error)) throw token && this.#isKnown ? passing(error) : error
        if (this.#token === token) this.#token = undefined
      }
    }
  }

  /** Opens a stream of messages. Resolves to a function that ends it. Rejects like `ask`. */
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
        listener.onFailure(new Error('the server does not respond'), true)
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

  /** Resolves to the auth token, or to '' if the server has no authentication, as etcd's own client does. */
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
      const { messages } = await this.#send(path, JSON.stringify(this.#user), LONGEST_REQUEST, undefined)
      const { token } = Object(messages[0]) as { token?: unknown }
      if (typeof token !== 'string') throw senseless(path)
      return token
    } catch (error) {
      if (isAuthOff(error)) return ''
      throw error
    }
  }

  #send(path: string, body: string, limit: number, token: string | undefined): Promise<Answered> {
    if (this.#closed) return Promise.reject(closed())
    return new Promise((resolve, reject) => {
      let sent = performance.now()
      const endpoints = this.#endpoints.map((_, index) => (this.#current + index) % this.#endpoints.length)
      const over = (): void => void this.#calls.delete(call)
      const call = new Call(limit, {
        next: listener => {
          const at = endpoints.shift()
          if (at === undefined) return undefined
          const onStart = (): void => {
            sent = performance.now()
            listener.onStart?.()
          }
          const giveUp = (this.#endpoints[at] as Endpoint).post(path, body, token, { ...listener, onStart })
          return { at, giveUp }
        },
        answered: (at, messages, isRepeated) => {
          over()
          this.#current = at
          this.roundTrip = performance.now() - sent
          resolve({ messages, isRepeated })
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

  /** Uses another endpoint from now on, and ends the streams of this one. */
  #leave(at: number): void {
    if (this.#current !== at || this.#closed) return
    this.#endpoints[at]?.renew()
    if (this.#endpoints.length === 1) return
    this.#current = (at + 1) % this.#endpoints.length
    for (const call of [...this.#calls]) call.leave(at)
    for (const stream of [...this.#streams]) if (stream.at === at) stream.fail()
  }
}

interface Answered {
  readonly messages: readonly unknown[]
  /** See `Course.answered`. */
  readonly isRepeated: boolean
}

interface Stream {
  readonly at: number
  fail(): void
}

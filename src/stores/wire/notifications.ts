import type { LeaseError } from '../../contract/errors.ts'
import { backoff, type Pauses } from '../../contract/request.ts'
import { inRootContext } from '../../contract/root-context.ts'
import type { Wake } from '../../contract/store.ts'
import type { Clock } from '../../contract/time.ts'
import type { Connection } from './connection.ts'
import { closed } from './failure.ts'
import { Waiters } from './waiters.ts'

/** The pauses in milliseconds between attempts to subscribe. */
const PAUSES: Pauses = [50, 2_000]

/** The channel by which a server notifies the waiters of one store. */
export interface Channel {
  /**
   * Resolves to a connection on which `notified` is called with each message, in the format of `notify`. Calls `ended` when
   * the subscription has ended by itself.
   */
  subscribe(notified: (message: string) => void, ended: () => void, closing: AbortSignal): Promise<Connection>
  /** The error for the caller if there is no subscription. */
  failure(error: unknown): LeaseError
}

/** Wakes the waiters of a store when messages of one channel arrive, over its own connection. */
export class Notifications {
  readonly #clock: Clock
  readonly #channel: Channel
  readonly #waiters: Waiters
  #subscribing: Promise<void> | undefined
  #connection: Connection | undefined
  /**
   * The reason why the last attempt failed, and the time until which no other is made. Waiters call `watch` again whenever
   * they ask.
   */
  #failure: { readonly reason: LeaseError; readonly until: number } | undefined
  #failures = 0
  /** The number of times that the subscription was moved. */
  #moves = 0
  readonly #end = new AbortController()

  constructor(clock: Clock, channel: Channel) {
    this.#clock = clock
    this.#channel = channel
    this.#waiters = new Waiters(clock)
  }

  /**
   * The current subscription. After a gap there is a new one. Without a subscription nobody is woken, and waiters must
   * poll.
   */
  get subscription(): object | undefined {
    return this.#connection
  }

  /** Has this subscription lasted until now, so that no notification was lost? */
  covers(subscription: object | undefined): boolean {
    return subscription !== undefined && subscription === this.#connection
  }

  /** Resolves once subscribed. From then until `signal` aborts, `wake` is called as a hint. Then `ended` is called. */
  async watch(id: string, wake: Wake, signal: AbortSignal, ended?: () => void): Promise<void> {
    if (this.#end.signal.aborted) throw closed()
    const remove = this.#waiters.add(id, wake, signal, ended)
    try {
      if (!this.#connection) await this.#subscribe()
    } catch (error) {
      remove()
      throw error
    }
  }

  /** Wakes a waiter by a message: `ID`, or `ID DELAY`. */
  notify(message: string): void {
    const [id = '', delay = '0'] = message.split(' ')
    this.#waiters.notify(id, Number(delay))
  }

  /**
   * Subscribes again, because requests now use another connection: the previous one was given up. The address may lead to
   * another server since then. The old server may never end this subscription, if it is a master that became a replica, or
   * a machine that hangs.
   */
  move(): void {
    this.#moves += 1
    if (this.#connection) this.#lose(this.#connection)
  }

  close(): void {
    this.#end.abort()
    this.#waiters.clear()
    this.#connection?.close()
    this.#connection = undefined
  }

  #subscribe(): Promise<void> {
    if (this.#failure && this.#clock.now() < this.#failure.until) return Promise.reject(this.#failure.reason)
    this.#subscribing ??= inRootContext(() => this.#begin()).catch(error => {
      this.#subscribing = undefined
      this.#failures += 1
      const reason = this.#end.signal.aborted ? closed() : this.#channel.failure(error)
      this.#failure = { reason, until: this.#clock.now() + backoff(this.#failures, Math.random, PAUSES) }
      throw reason
    })
    return this.#subscribing
  }

  async #begin(): Promise<void> {
    const moves = this.#moves
    let isLost = false
    let connection: Connection | undefined
    const ended = (): void => {
      isLost = true
      if (connection && this.#connection === connection) this.#lose(connection)
    }
    // Clients pass their signal to net.connect(), which leaves a listener at it, and this store may connect for years.
    const opening = new AbortController()
    const stop = (): void => opening.abort(this.#end.signal.reason)
    this.#end.signal.addEventListener('abort', stop)
    try {
      connection = await this.#channel.subscribe(message => this.notify(message), ended, opening.signal)
    } finally {
      this.#end.signal.removeEventListener('abort', stop)
    }
    if (isLost || moves !== this.#moves || this.#end.signal.aborted) {
      connection.close()
      if (!isLost && !this.#end.signal.aborted) return this.#begin()
      throw new Error('the connection ended')
    }
    this.#connection = connection
    this.#failure = undefined
    this.#failures = 0
  }

  /** Notifications were lost, so every waiter asks: now, to learn how often to poll, and again once subscribed. */
  #lose(connection: Connection): void {
    this.#connection = undefined
    this.#subscribing = undefined
    connection.close()
    this.#waiters.notifyAll()
    this.#subscribeAgain()
  }

  #subscribeAgain(): void {
    const again = async (): Promise<void> => {
      if (this.#end.signal.aborted || this.#waiters.size === 0) return
      try {
        await this.#subscribe()
        this.#waiters.notifyAll()
      } catch {
        this.#subscribeAgain()
      }
    }
    const left = (this.#failure?.until ?? 0) - this.#clock.now()
    this.#clock.after(Math.max(left, backoff(1, Math.random, PAUSES)), () => void again(), true)
  }
}

import type { LeaseError } from '../../contract/errors.ts'
import type { Wake } from '../../contract/store.ts'
import { closed } from './closed.ts'
import type { AnyLink } from './link.ts'

/** Milliseconds before listening is tried again, doubled by each failure up to the longest. */
const SHORTEST_PAUSE = 50
const LONGEST_PAUSE = 2_000

/** Nearly all are of claims that were withdrawn; those that somebody will watch are the newest. */
const MOST_EARLY = 1_000

export interface Channel {
  /**
   * Resolves with what hears messages: the id of a claim, and after a space in how many milliseconds to ask. Calls
   * `ended` when it has ended by itself.
   */
  listen(heard: (message: string) => void, ended: () => void, closing: AbortSignal): Promise<AnyLink>
  /** The error that a caller sees when nothing can be heard. */
  failure(error: unknown): LeaseError
}

/** Hears on one channel, on a connection of its own, which of this store's waiters should ask again. */
export class Wakes {
  readonly #channel: Channel
  readonly #wakes = new Map<string, Wake>()
  /** When to ask, of those who were woken and are not watched yet, which takes one turn of the event loop. */
  readonly #early = new Map<string, number>()
  #listening: Promise<void> | undefined
  #link: AnyLink | undefined
  /** Why nothing could be heard, and when to try again: a waiter watches anew whenever it asks, which is often then. */
  #failure: { readonly reason: LeaseError; readonly until: number } | undefined
  #pause = SHORTEST_PAUSE
  readonly #end = new AbortController()

  constructor(channel: Channel) {
    this.#channel = channel
  }

  /** What hears messages; another one after a gap. While there is none, nobody is woken and waiters must ask often. */
  get ears(): object | undefined {
    return this.#link
  }

  /** Resolves once messages are heard; from then until `signal` aborts, `wake` is called as a hint. */
  async watch(id: string, wake: Wake, signal: AbortSignal): Promise<void> {
    if (this.#end.signal.aborted) throw closed()
    this.#wakes.set(id, wake)
    const forget = (): void => {
      this.#wakes.delete(id)
    }
    signal.addEventListener('abort', forget, { once: true })
    if (signal.aborted) forget()
    const early = this.#early.get(id)
    if (early !== undefined) this.#hear(id, early - performance.now())
    this.#early.delete(id)
    try {
      if (!this.#link) await this.#listen()
    } catch (error) {
      forget()
      throw error
    }
  }

  close(): void {
    this.#end.abort()
    this.#wakes.clear()
    this.#link?.close()
    this.#link = undefined
  }

  #hear(id: string, delay: number): void {
    const wake = this.#wakes.get(id)
    if (wake) wake(Math.max(delay, 0))
    else this.#early.set(id, performance.now() + delay)
    if (this.#early.size > MOST_EARLY) for (const oldest of this.#early.keys()) return void this.#early.delete(oldest)
  }

  #listen(): Promise<void> {
    if (this.#failure && performance.now() < this.#failure.until) return Promise.reject(this.#failure.reason)
    this.#listening ??= this.#begin().catch(error => {
      this.#listening = undefined
      const reason = this.#end.signal.aborted ? closed() : this.#channel.failure(error)
      this.#failure = { reason, until: performance.now() + this.#pause }
      this.#pause = Math.min(this.#pause * 2, LONGEST_PAUSE)
      throw reason
    })
    return this.#listening
  }

  async #begin(): Promise<void> {
    const hear = (message: string): void => {
      const [id = '', delay = '0'] = message.split(' ')
      this.#hear(id, Number(delay))
    }
    let isLost = false
    let link: AnyLink | undefined
    const lose = (): void => {
      isLost = true
      if (link && this.#link === link) this.#lose(link)
    }
    link = await this.#channel.listen(hear, lose, this.#end.signal)
    if (isLost || this.#end.signal.aborted) {
      link.close()
      throw new Error('the connection ended')
    }
    this.#link = link
    this.#failure = undefined
    this.#pause = SHORTEST_PAUSE
  }

  /** What was said meanwhile is lost, so everybody asks: now, to learn how often, and once it is heard again. */
  #lose(link: AnyLink): void {
    this.#link = undefined
    this.#listening = undefined
    link.close()
    this.#wakeAll()
    this.#listenAgain()
  }

  #listenAgain(): void {
    const again = async (): Promise<void> => {
      if (this.#end.signal.aborted || this.#wakes.size === 0) return
      try {
        await this.#listen()
        this.#wakeAll()
      } catch {
        this.#listenAgain()
      }
    }
    const pause = Math.max((this.#failure?.until ?? 0) - performance.now(), SHORTEST_PAUSE)
    setTimeout(() => void again(), pause * (1 + Math.random() / 2)).unref()
  }

  #wakeAll(): void {
    for (const wake of [...this.#wakes.values()]) wake()
  }
}

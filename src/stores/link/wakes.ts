import type { LeaseError } from '../../errors.ts'
import type { Wake } from '../../store.ts'
import { closed } from './closed.ts'
import type { AnyLink } from './link.ts'

/** Milliseconds before listening is tried again; random, and doubled by each failure up to the longest. */
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
    this.#listening ??= this.#begin().catch(error => {
      this.#listening = undefined
      throw this.#end.signal.aborted ? closed() : this.#channel.failure(error)
    })
    return this.#listening
  }

  async #begin(): Promise<void> {
    const hear = (message: string): void => {
      const [id = '', delay = '0'] = message.split(' ')
      this.#hear(id, Number(delay))
    }
    let isLost = false
    const lose = (): void => {
      isLost = true
      this.#lose()
    }
    const link = await this.#channel.listen(hear, lose, this.#end.signal)
    if (isLost || this.#end.signal.aborted) {
      link.close()
      throw new Error('the connection ended')
    }
    this.#link = link
  }

  /** What was said meanwhile is lost, so everybody asks: now, to learn how often, and once it is heard again. */
  #lose(): void {
    const link = this.#link
    if (!link) return
    this.#link = undefined
    this.#listening = undefined
    link.close()
    this.#wakeAll()
    this.#listenAgain(SHORTEST_PAUSE)
  }

  #listenAgain(pause: number): void {
    const again = async (): Promise<void> => {
      if (this.#end.signal.aborted || this.#wakes.size === 0) return
      try {
        await this.#listen()
        this.#wakeAll()
      } catch {
        this.#listenAgain(Math.min(pause * 2, LONGEST_PAUSE))
      }
    }
    setTimeout(() => void again(), pause * (0.5 + Math.random() / 2)).unref()
  }

  #wakeAll(): void {
    for (const wake of [...this.#wakes.values()]) wake()
  }
}

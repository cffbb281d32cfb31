import type { Wake } from '../../store.ts'
import { type Driver, type Link, openLink } from './client.ts'
import { closed, failure } from './failure.ts'

/** Milliseconds before the subscription is tried again; random, and doubled by each failure up to the longest. */
const SHORTEST_PAUSE = 50
const LONGEST_PAUSE = 2_000

/** Hears on one channel, on a connection of its own, which of this store's waiters should ask again. */
export class Wakes {
  readonly #driver: Driver
  readonly #channel: string
  readonly #wakes = new Map<string, () => void>()
  #listening: Promise<void> | undefined
  #link: Link | undefined
  readonly #end = new AbortController()

  constructor(driver: Driver, channel: string) {
    this.#driver = driver
    this.#channel = channel
  }

  /** While false, nobody is woken and waiters must ask often. */
  get isListening(): boolean {
    return this.#link !== undefined
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
    try {
      await this.#listen()
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

  #listen(): Promise<void> {
    this.#listening ??= this.#subscribe().catch(error => {
      this.#listening = undefined
      throw error
    })
    return this.#listening
  }

  async #subscribe(): Promise<void> {
    const { isCluster } = this.#driver
    let isLost = false
    const listen = async (link: Link): Promise<void> => {
      link.onEnd(() => {
        isLost = true
        this.#lose(link)
      })
      await link.subscribe(this.#channel, id => this.#wakes.get(id)?.())
      if (isLost) throw new Error('the connection ended')
    }
    try {
      this.#link = await openLink(this.#driver, listen, this.#end.signal)
    } catch (error) {
      throw this.#end.signal.aborted ? closed() : failure(error, { sent: false, served: true, isCluster })
    }
    if (this.#end.signal.aborted) this.close()
  }

  /** What was said meanwhile is lost, so everybody asks: now, to learn how often, and once it is heard again. */
  #lose(link: Link): void {
    if (this.#link !== link) return
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

import { LeaseError } from '../../errors.ts'
import type { Wake } from '../../store.ts'
import { closed } from '../link/closed.ts'
import { type Driver, type Link, openLink } from './client.ts'
import { failure } from './failure.ts'

/** Milliseconds before the subscription is tried again; random, and doubled by each failure up to the longest. */
const SHORTEST_PAUSE = 50
const LONGEST_PAUSE = 2_000

/** Nearly all are of claims that were withdrawn; those that somebody will watch are the newest. */
const MOST_EARLY = 1_000

/** Hears on one channel, on a connection of its own, which of this store's waiters should ask again. */
export class Wakes {
  readonly #driver: Driver
  readonly #channel: string
  readonly #wakes = new Map<string, Wake>()
  /** When to ask, of those who were woken and are not watched yet, which takes one turn of the event loop. */
  readonly #early = new Map<string, number>()
  #listening: Promise<void> | undefined
  #link: Link | undefined
  readonly #end = new AbortController()

  constructor(driver: Driver, channel: string) {
    this.#driver = driver
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
    this.#listening ??= this.#subscribe().catch(error => {
      this.#listening = undefined
      throw error
    })
    return this.#listening
  }

  async #subscribe(): Promise<void> {
    let isLost = false
    const listen = async (link: Link): Promise<void> => {
      link.onEnd(() => {
        isLost = true
        this.#lose(link)
      })
      await checkDirect(link)
      await link.listen(this.#channel, message => {
        const [id = '', delay = '0'] = message.split(' ')
        this.#hear(id, Number(delay))
      })
      if (isLost) throw new Error('the connection ended')
    }
    try {
      this.#link = (await openLink(this.#driver, listen, this.#end.signal)).link
    } catch (error) {
      throw this.#end.signal.aborted ? closed() : failure(error, false)
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

/** A pooler hands the connection to others between two statements, and messages with it. */
async function checkDirect(link: Link): Promise<void> {
  const pid = Number(await link.ask('select pg_backend_pid()::text'))
  if (link.pid === undefined || link.pid === pid) return
  const message =
    'messages cannot be heard through a pooler: give the option direct a client that connects to PostgreSQL itself'
  throw new LeaseError('INVALID_ARGUMENT', message)
}

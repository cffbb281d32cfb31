import type { LeaseError } from '../../errors.ts'
import { LONGEST_REQUEST } from '../../time.ts'
import type { Driver, Link } from './client.ts'
import { closed, failure, isReply } from './failure.ts'
import { type Order, type Reply, Session } from './session.ts'

/**
 * The store's own connection, opened by the first request that finds none. One that falls silent serves on until
 * another is open beside it, so that a dead path costs one request, and a slow server none.
 */
export class Connection {
  readonly #driver: Driver
  readonly #channel: string
  /** Told the first connection that served. */
  readonly #onServed: (link: Link) => void
  #current: Session | undefined
  /** Replaced, and not yet idle. */
  readonly #retired = new Set<Session>()
  #opening: Promise<Session> | undefined
  #served = false
  #closed = false

  constructor(driver: Driver, channel: string, onServed: (link: Link) => void) {
    this.#driver = driver
    this.#channel = channel
    this.#onServed = onServed
  }

  /** Rejects with a `LeaseError`, after 5 s at the latest. `onSilent` is called if no answer came for `patience` ms. */
  async carryOut(orders: readonly Order[], patience: number, onSilent: () => void): Promise<Reply> {
    const session = await this.#session()
    const answer = session.carryOut(orders, this.#channel)
    const timers: NodeJS.Timeout[] = []
    const silence = new Promise<never>((_, reject) => {
      const replace = (): void => {
        this.#replace(session)
        onSilent()
      }
      const giveUp = (): void => reject(new Silence(`no answer within ${LONGEST_REQUEST} ms`))
      timers.push(setTimeout(replace, patience).unref(), setTimeout(giveUp, LONGEST_REQUEST).unref())
    })
    try {
      const reply = await Promise.race([answer, silence])
      const refusal = reply.answers.find(each => String(each).startsWith('!'))
      if (refusal !== undefined) this.#doubt(session, refusal)
      else if (!this.#served) this.#onServed(session.link)
      this.#served ||= refusal === undefined
      return reply
    } catch (error) {
      this.#doubt(session, error)
      // A connection that ended knows better why, such as for a wrong password.
      const knows = !isReply(error) && !this.#driver.isCluster
      throw this.failure((knows && session.link.failure()) || error)
    } finally {
      for (const timer of timers) clearTimeout(timer)
    }
  }

  /** A connection that seems to work. Rejects with a `LeaseError` if none can be had now. */
  async link(): Promise<Link> {
    return (await this.#session()).link
  }

  /** The error that a caller sees; of a request that left, unless `sent` is false. */
  failure(error: unknown, sent = true): LeaseError {
    if (this.#closed) return closed()
    return failure(error, { sent, served: this.#served, isCluster: this.#driver.isCluster })
  }

  close(): void {
    this.#closed = true
    this.#current?.link.close()
    for (const session of this.#retired) session.link.close()
  }

  async #session(): Promise<Session> {
    if (this.#closed) throw closed()
    return this.#current?.link.isOpen() ? this.#current : this.#open()
  }

  #open(): Promise<Session> {
    this.#opening ??= this.#tryToOpen().finally(() => {
      this.#opening = undefined
    })
    return this.#opening
  }

  async #tryToOpen(): Promise<Session> {
    const session = await Session.open(this.#driver).catch(error => {
      throw this.failure(error, false)
    })
    if (this.#closed) {
      session.link.close()
      throw closed()
    }
    this.#retire()
    this.#current = session
    return session
  }

  #replace(session: Session): void {
    if (this.#current === session && !this.#closed) this.#open().catch(() => {}) // the next request says why
  }

  #doubt(session: Session, error: unknown): void {
    if (this.#current !== session) return
    const isSingle = !this.#driver.isCluster
    // A master that has become a replica, and a server that stands still, are left for whatever answers instead.
    if (isSingle && (error instanceof Silence || /READONLY/.test(String(error)))) this.#retire()
    else if (!isReply(error) && session.link.isOpen()) this.#replace(session)
  }

  #retire(): void {
    const session = this.#current
    this.#current = undefined
    if (!session) return
    this.#retired.add(session)
    // What is under way on it is given up by then.
    setTimeout(() => {
      session.link.close()
      this.#retired.delete(session)
    }, LONGEST_REQUEST).unref()
  }
}

class Silence extends Error {}

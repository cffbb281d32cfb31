import type { LeaseError } from '../../errors.ts'
import { List } from '../../list.ts'
import { LONGEST_REQUEST } from '../../time.ts'
import { closed } from '../link/closed.ts'
import type { Driver, Link } from './client.ts'
import { failure, isReply } from './failure.ts'
import { type Dialect, type Order, type Reply, Session } from './session.ts'

/** Milliseconds of silence after which another connection is tried, unless a request has less time. */
const PATIENCE = 1_000
/** A server that stands still for less is not worth it. */
const SHORTEST_PATIENCE = 100
/** How often silence is looked for while something is under way. */
const WATCH_INTERVAL = 50

interface Flight {
  readonly session: Session
  readonly sent: number
  readonly onSilent: () => void
  readonly giveUp: (error: Error) => void
  /** When to be impatient; infinite once that was done. */
  impatientAt: number
}

/**
 * The store's own connection, opened by the first request that finds none. One that falls silent serves on until
 * another is open beside it, so that a dead path costs one request, and a slow server none.
 */
export class Connection {
  readonly #driver: Driver
  readonly #dialect: Dialect
  /** Told the first connection that served. */
  readonly #onServed: (link: Link) => void
  #current: Session | undefined
  /** Replaced, and not yet idle. */
  readonly #retired = new Set<Session>()
  #opening: Promise<Session> | undefined
  readonly #flights = new List<Flight>()
  #watching = false
  #served = false
  readonly #end = new AbortController()

  constructor(driver: Driver, dialect: Dialect, onServed: (link: Link) => void) {
    this.#driver = driver
    this.#dialect = dialect
    this.#onServed = onServed
  }

  /** Rejects with a `LeaseError`, after 5 s at the latest. `onSilent` is called if there is no answer for long. */
  carryOut(orders: readonly Order[], onSilent: () => void): Promise<Reply> {
    const session = this.#current
    if (session?.link.isOpen() && !this.#end.signal.aborted) return this.#fly(session, orders, onSilent)
    return this.#session().then(opened => this.#fly(opened, orders, onSilent))
  }

  /** A connection that seems to work. Rejects with a `LeaseError` if none can be had now. */
  async link(): Promise<Link> {
    return (await this.#session()).link
  }

  /** The error that a caller sees; of a request that left, unless `sent` is false. */
  failure(error: unknown, sent = true): LeaseError {
    if (this.#end.signal.aborted) return closed()
    return failure(error, { sent, served: this.#served, isCluster: this.#driver.isCluster })
  }

  close(): void {
    this.#end.abort()
    this.#current?.link.close()
    for (const session of this.#retired) session.link.close()
  }

  async #session(): Promise<Session> {
    if (this.#end.signal.aborted) throw closed()
    return this.#current?.link.isOpen() ? this.#current : this.#open()
  }

  #open(): Promise<Session> {
    this.#opening ??= this.#tryToOpen().finally(() => {
      this.#opening = undefined
    })
    return this.#opening
  }

  async #tryToOpen(): Promise<Session> {
    const session = await Session.open(this.#driver, this.#dialect, this.#end.signal).catch(error => {
      throw this.failure(error, false)
    })
    if (this.#end.signal.aborted) {
      session.link.close()
      throw closed()
    }
    this.#retire()
    this.#current = session
    return session
  }

  #fly(session: Session, orders: readonly Order[], onSilent: () => void): Promise<Reply> {
    return new Promise((resolve, reject) => {
      const sent = performance.now()
      const land = (): void => {
        this.#flights.remove(entry)
      }
      const fail = (error: unknown): void => {
        land()
        this.#doubt(session, error)
        // A connection that ended knows better why, such as for a wrong password.
        reject(this.failure((!isReply(error) && session.link.failure()) || error))
      }
      const flight: Flight = { session, sent, onSilent, giveUp: fail, impatientAt: sent + patienceOf(orders, sent) }
      const entry = this.#flights.add(flight)
      this.#watch()
      session.carryOut(orders, sent).then(reply => {
        land()
        this.#judge(session, reply)
        resolve(reply)
      }, fail)
    })
  }

  #judge(session: Session, { answers }: Reply): void {
    const refusal = answers.find(isRefusal)
    if (refusal !== undefined) this.#doubt(session, refusal)
    else if (!this.#served) {
      this.#served = true
      this.#onServed(session.link)
    }
  }

  /** One timer for all that is under way; none when nothing is. */
  #watch(): void {
    if (this.#watching || this.#flights.size === 0) return
    this.#watching = true
    // Answers that came while the event loop was blocked are read before they count as missing.
    setTimeout(() => setImmediate(() => this.#lookForSilence()), WATCH_INTERVAL).unref()
  }

  #lookForSilence(): void {
    this.#watching = false
    const now = performance.now()
    for (const flight of this.#flights.values()) this.#check(flight, now)
    this.#watch()
  }

  #check(flight: Flight, now: number): void {
    if (now >= flight.impatientAt) {
      flight.impatientAt = Number.POSITIVE_INFINITY
      this.#replace(flight.session)
      flight.onSilent()
    }
    if (now >= flight.sent + LONGEST_REQUEST) flight.giveUp(new Silence(`no answer within ${LONGEST_REQUEST} ms`))
  }

  #replace(session: Session): void {
    if (this.#current === session && !this.#end.signal.aborted) this.#open().catch(() => {}) // the next request says why
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

/** A request that failed alone. */
function isRefusal(answer: unknown): boolean {
  return typeof answer === 'string' && answer.startsWith('!')
}

function patienceOf(orders: readonly Order[], now: number): number {
  let patience = PATIENCE
  for (const { until } of orders) if (until !== undefined) patience = Math.min(patience, until - now)
  return Math.max(patience, SHORTEST_PATIENCE)
}

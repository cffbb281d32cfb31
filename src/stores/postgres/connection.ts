import type { LeaseError } from '../../errors.ts'
import { List } from '../../list.ts'
import { LONGEST_REQUEST } from '../../time.ts'
import { closed } from '../link/closed.ts'
import { failure, isReply } from './failure.ts'
import type { Session } from './session.ts'

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

/** What one request over a session answers. */
export type Work<Answer> = (session: Session) => Promise<Answer>

/**
 * The store's own connection, opened by the first request that finds none. One that falls silent serves on until
 * another is open beside it, so that a dead path costs one request, and a slow server none.
 */
export class Connection {
  readonly #openSession: (closing: AbortSignal) => Promise<Session>
  #current: Session | undefined
  /** Replaced, and not yet idle. */
  readonly #retired = new Set<Session>()
  #opening: Promise<Session> | undefined
  readonly #flights = new List<Flight>()
  #watching = false
  readonly #end = new AbortController()

  constructor(openSession: (closing: AbortSignal) => Promise<Session>) {
    this.#openSession = openSession
  }

  /**
   * Rejects with a `LeaseError`, after 5 s at the latest. `onSilent` is called if there is no answer for `patience` ms.
   */
  async carryOut<Answer>(
    work: Work<Answer>,
    patience: number = PATIENCE,
    onSilent: () => void = () => {},
  ): Promise<Answer> {
    return this.#fly(await this.#session(), work, patience, onSilent)
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
    const session = await this.#openSession(this.#end.signal).catch(error => {
      throw this.#failure(error, false)
    })
    if (this.#end.signal.aborted) {
      session.link.close()
      throw closed()
    }
    this.#retire()
    this.#current = session
    return session
  }

  #failure(error: unknown, sent: boolean): LeaseError {
    return this.#end.signal.aborted ? closed() : failure(error, sent)
  }

  #fly<Answer>(session: Session, work: Work<Answer>, patience: number, onSilent: () => void): Promise<Answer> {
    return new Promise((resolve, reject) => {
      const sent = performance.now()
      const fail = (error: unknown): void => {
        this.#flights.remove(entry)
        this.#doubt(session, error)
        reject(this.#failure(error, true))
      }
      const impatientAt = sent + Math.min(Math.max(patience, SHORTEST_PATIENCE), PATIENCE)
      const entry = this.#flights.add({ session, sent, onSilent, giveUp: fail, impatientAt })
      this.#watch()
      work(session).then(answer => {
        this.#flights.remove(entry)
        resolve(answer)
      }, fail)
    })
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
      if (this.#current === flight.session && !this.#end.signal.aborted) this.#open().catch(() => {}) // the next request says why
      flight.onSilent()
    }
    if (now >= flight.sent + LONGEST_REQUEST) flight.giveUp(new Silence(`no answer within ${LONGEST_REQUEST} ms`))
  }

  #doubt(session: Session, error: unknown): void {
    if (this.#current !== session) return
    if (error instanceof Silence || !isReply(error)) this.#retire()
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

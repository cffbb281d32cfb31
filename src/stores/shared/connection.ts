import type { LeaseError } from '../../contract/errors.ts'
import { List } from '../../contract/list.ts'
import { LONGEST_REQUEST } from '../../contract/time.ts'
import { closed } from './closed.ts'
import type { AnySession } from './link.ts'
import { Opening } from './opening.ts'

/** Milliseconds of silence after which another connection is tried, unless a request has less time. */
const PATIENCE = 1_000
/** A server that stands still for less is not worth it. */
const SHORTEST_PATIENCE = 100
/**
 * Replaced connections that stay open for late answers. When there are this many, a connection that never answered is not
 * replaced: the server itself hangs, and keeps a process for each connection.
 */
const MOST_RETIRED = 2
/** How often silence is looked for while something is under way. */
const WATCH_INTERVAL = 50

export interface Server<Session extends AnySession> {
  /** `closing` ends the attempt. */
  open(closing: AbortSignal): Promise<Session>
  /** The error that a caller sees; of a request that left by `session`, or of none that left. */
  failure(error: unknown, session?: Session): LeaseError
  /**
   * What is to be done about the connection of a request that failed, by a `Silence` if no answer came: `retire` it at
   * once, `replace` it when another is open, or `keep` it.
   */
  judge(error: unknown, session: Session): 'retire' | 'replace' | 'keep'
}

/** What one request over a session answers; it left at `sent`, by `performance.now()`. */
export type Work<Session, Answer> = (session: Session, sent: number) => Promise<Answer>

export interface Patience {
  /** Milliseconds that the request has; there is patience for 100 to 1,000. @default 1000 */
  readonly patience?: number | undefined
  /** Called if there is no answer in that time. */
  readonly onSilent?: () => void
}

interface Flight<Session> {
  readonly session: Session
  readonly sent: number
  readonly patience: number
  readonly onSilent: (() => void) | undefined
  readonly giveUp: (error: Error) => void
  /** When to be impatient; infinite once that was done. */
  impatientAt: number
}

/**
 * The store's own connection, opened by the first request that finds none. One that falls silent serves on until
 * another is open beside it, so that a dead path costs one request, and a slow server none.
 */
export class Connection<Session extends AnySession> {
  readonly #server: Server<Session>
  #current: Session | undefined
  /** The current one, once it has answered. */
  #proven: Session | undefined
  /** Replaced, and not yet idle. */
  readonly #retired = new Set<Session>()
  #opening: Opening<Session> | undefined
  #opened: Promise<Session> | undefined
  readonly #flights = new List<Flight<Session>>()
  #watching = false
  readonly #end = new AbortController()

  constructor(server: Server<Session>) {
    this.#server = server
  }

  /** Rejects with a `LeaseError`, after 5 s at the latest. */
  carryOut<Answer>(work: Work<Session, Answer>, patience: Patience = {}): Promise<Answer> {
    const session = this.#current
    if (session?.link.isOpen() && !this.#end.signal.aborted) return this.#fly(session, work, patience)
    return this.session(patience.patience).then(opened => this.#fly(opened, work, patience))
  }

  /** A session that seems to work. Rejects with a `LeaseError` if none can be opened now. */
  async session(patience?: number): Promise<Session> {
    if (this.#end.signal.aborted) throw closed()
    if (this.#current?.link.isOpen()) return this.#current
    const isJoining = this.#opening !== undefined
    const asked = performance.now()
    return this.#open(patience).catch(error => {
      // An attempt that began before this request may fail for an old reason, such as a password that is correct now.
      if (isJoining && performance.now() < asked + PATIENCE && !this.#end.signal.aborted) return this.#open(patience)
      throw error
    })
  }

  /** The error that a caller sees. */
  failure(error: unknown, session?: Session): LeaseError {
    return this.#end.signal.aborted ? closed() : this.#server.failure(error, session)
  }

  /** To be told of what went wrong on a connection, where an answer says so. */
  doubt(session: Session, error: unknown): void {
    if (this.#current !== session) return
    const judgement = this.#server.judge(error, session)
    if (judgement === 'retire') this.#retire()
    else if (judgement === 'replace') this.#replace(session)
  }

  close(): void {
    this.#end.abort()
    this.#opening?.stop()
    this.#current?.link.close()
    for (const session of this.#retired) session.link.close()
  }

  #open(patience?: number): Promise<Session> {
    this.#opening?.hurry(bounded(patience))
    this.#opened ??= this.#begin(bounded(patience)).finally(() => {
      this.#opening = undefined
      this.#opened = undefined
    })
    return this.#opened
  }

  async #begin(patience: number): Promise<Session> {
    this.#opening = new Opening(closing => this.#server.open(closing), patience)
    const session = await this.#opening.session.catch(error => {
      throw this.failure(error)
    })
    if (this.#end.signal.aborted) {
      session.link.close()
      throw closed()
    }
    this.#retire()
    this.#current = session
    return session
  }

  #fly<Answer>(session: Session, work: Work<Session, Answer>, options: Patience): Promise<Answer> {
    return new Promise((resolve, reject) => {
      const sent = performance.now()
      const fail = (error: unknown): void => {
        this.#flights.remove(entry)
        this.doubt(session, error)
        reject(this.failure(error, session))
      }
      const patience = bounded(options.patience)
      const { onSilent } = options
      const entry = this.#flights.add({ session, sent, patience, onSilent, giveUp: fail, impatientAt: sent + patience })
      this.#watch()
      work(session, sent).then(answer => {
        this.#flights.remove(entry)
        if (this.#current === session) this.#proven = session
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

  #check(flight: Flight<Session>, now: number): void {
    if (now >= flight.impatientAt) {
      flight.impatientAt = Number.POSITIVE_INFINITY
      this.#replace(flight.session, flight.patience)
      flight.onSilent?.()
    }
    if (now >= flight.sent + LONGEST_REQUEST) flight.giveUp(new Silence(`no answer within ${LONGEST_REQUEST} ms`))
  }

  #replace(session: Session, patience?: number): void {
    if (this.#current !== session || this.#end.signal.aborted) return
    if (this.#proven !== session && this.#retired.size >= MOST_RETIRED) return
    this.#open(patience).catch(() => {}) // the next request reports why
  }

  #retire(): void {
    const session = this.#current
    this.#current = undefined
    if (!session) return
    this.#retired.add(session)
    if (!session.link.isOpen()) this.#discard(session)
    // By then every request on it has given up.
    setTimeout(() => this.#discard(session), LONGEST_REQUEST).unref()
    // The server has answered on newer connections while the oldest hung.
    for (const oldest of this.#retired) if (this.#retired.size > MOST_RETIRED) this.#discard(oldest)
  }

  #discard(session: Session): void {
    session.link.close()
    this.#retired.delete(session)
  }
}

/** The patience that a request has, in milliseconds. */
function bounded(patience = PATIENCE): number {
  return Math.min(Math.max(patience, SHORTEST_PATIENCE), PATIENCE)
}

/** No answer came within the longest request. */
export class Silence extends Error {}

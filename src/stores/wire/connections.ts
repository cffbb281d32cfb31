import type { LeaseError } from '../../contract/errors.ts'
import { type Entry, List } from '../../contract/list.ts'
import { inRootContext } from '../../contract/root-context.ts'
import { LONGEST_REQUEST } from '../../contract/time.ts'
import type { Connection } from './connection.ts'
import { closed } from './failure.ts'
import { Opening } from './opening.ts'
import { FlightTimer, NoAnswer, PATIENCE, patienceFor } from './timeouts.ts'

/**
 * The number of replaced connections that stay open for late answers. If there are this many, the server itself may hang,
 * and keep a process for each connection. So one that never answered is replaced `PATIENCE` ms after it was opened, not
 * sooner. The old server of a failover may hang until the end: it would keep this process from the new one.
 */
const MOST_RETIRED = 2

export interface Server<Opened extends Connection> {
  /** Opens a connection. `closing` ends the attempt. */
  open(closing: AbortSignal): Promise<Opened>
  /**
   * The error for the caller. `connection` is the one that the request was sent on. Without `connection`, it was not sent.
   */
  failure(error: unknown, connection?: Opened): LeaseError
  /**
   * Decides what to do with the connection of a request that failed (with `NoAnswer` if there was no answer): `retire` it
   * at once, `replace` it when another one is open, or `keep` it.
   */
  judge(error: unknown, connection: Opened): 'retire' | 'replace' | 'keep'
  /** Another connection has answered, after one was given up while it was open: perhaps it is one to another server. */
  replaced?(): void
}

/** Runs one request over a connection. The request was sent at `sent`, by `performance.now()`. */
export type Work<Opened, Answer> = (connection: Opened, sent: number) => Promise<Answer>

export interface RunOptions {
  /** Milliseconds that the request has. Another connection is opened after 100 to 1,000 of them. @default 1000 */
  readonly patience?: number | undefined
  /** Called if there is no answer in that time. */
  readonly onUnresponsive?: () => void
  /** Called when a connection is open, if it had to be opened first. If this throws, nothing is sent (R13). */
  readonly onOpened?: () => void
}

interface Flight<Opened> {
  readonly connection: Opened
  readonly sent: number
  readonly patience: number
  readonly onUnresponsive: (() => void) | undefined
  readonly giveUp: (error: Error) => void
  /** The time of the next action: to replace the connection, and then to give up. */
  due: number
}

/**
 * The connections of a store. One is current, and the first request that finds none opens it. An unresponsive connection
 * stays in use until another one is open. So a dead path costs one request, and a slow server none.
 */
export class Connections<Opened extends Connection> {
  readonly #server: Server<Opened>
  #current: Opened | undefined
  #openedAt = 0
  /** Was a connection given up while it was open, since one has answered? */
  #isGivenUp = false
  /** The current connection, once it has answered. */
  #proven: Opened | undefined
  /** Replaced connections on which requests still wait for answers. */
  readonly #retired = new Set<Opened>()
  #opening: Opening<Opened> | undefined
  #opened: Promise<Opened> | undefined
  readonly #flights = new List<Flight<Opened>>()
  /** The number of requests in flight on each connection that has some. */
  readonly #used = new Map<Opened, number>()
  readonly #timer = new FlightTimer(now => this.#checkFlights(now))
  readonly #end = new AbortController()

  constructor(server: Server<Opened>) {
    this.#server = server
  }

  /** Runs `work` over a connection. Rejects with a `LeaseError`, at the latest 5 s after the connection was open. */
  run<Answer>(work: Work<Opened, Answer>, options: RunOptions = {}): Promise<Answer> {
    const connection = this.#current
    if (connection?.isOpen() && !this.#end.signal.aborted) return this.#fly(connection, work, options)
    return this.#usable(options.patience).then(opened => {
      options.onOpened?.()
      return this.#fly(opened, work, options)
    })
  }

  /** Resolves to a connection that is not known to have failed. Rejects with a `LeaseError` if none can be opened now. */
  async #usable(patience?: number): Promise<Opened> {
    if (this.#end.signal.aborted) throw closed()
    if (this.#current?.isOpen()) return this.#current
    const isJoining = this.#opening !== undefined
    const asked = performance.now()
    return this.#open(patience).catch(error => {
      // An attempt that began before this request may fail for an old reason, such as a password that is correct by now.
      if (isJoining && performance.now() < asked + PATIENCE && !this.#end.signal.aborted) return this.#open(patience)
      throw error
    })
  }

  /** The error for the caller. */
  failure(error: unknown, connection?: Opened): LeaseError {
    return this.#end.signal.aborted ? closed() : this.#server.failure(error, connection)
  }

  /** Acts on an answer that reports a problem of its connection. */
  doubt(connection: Opened, error: unknown): void {
    if (this.#current !== connection) return
    const judgement = this.#server.judge(error, connection)
    if (judgement === 'retire') this.#retire()
    else if (judgement === 'replace') this.#replace(connection)
  }

  close(): void {
    this.#end.abort()
    this.#opening?.stop()
    this.#current?.close()
    for (const connection of this.#retired) connection.close()
  }

  #open(patience?: number): Promise<Opened> {
    this.#opening?.hurry(patienceFor(patience))
    this.#opened ??= this.#begin(patienceFor(patience)).finally(() => {
      this.#opening = undefined
      this.#opened = undefined
    })
    return this.#opened
  }

  async #begin(patience: number): Promise<Opened> {
    this.#opening = inRootContext(() => new Opening(closing => this.#server.open(closing), patience))
    const connection = await this.#opening.connection.catch(error => {
      throw this.failure(error)
    })
    if (this.#end.signal.aborted) {
      connection.close()
      throw closed()
    }
    this.#retire()
    this.#current = connection
    this.#openedAt = performance.now()
    return connection
  }

  #fly<Answer>(connection: Opened, work: Work<Opened, Answer>, options: RunOptions): Promise<Answer> {
    return new Promise((resolve, reject) => {
      const sent = performance.now()
      const giveUp = (error: unknown): void => {
        this.#land(entry)
        this.doubt(connection, error)
        reject(this.failure(error, connection))
      }
      const patience = patienceFor(options.patience)
      const { onUnresponsive } = options
      const due = sent + patience
      const entry = this.#flights.add({ connection, sent, patience, onUnresponsive, giveUp, due })
      this.#used.set(connection, (this.#used.get(connection) ?? 0) + 1)
      this.#timer.watch(due)
      work(connection, sent).then(answer => {
        this.#land(entry)
        if (this.#current === connection) this.#prove(connection)
        resolve(answer)
      }, giveUp)
    })
  }

  /** Only now: a demoted master also lets itself be connected to, and waiters that were told then would only ask it. */
  #prove(connection: Opened): void {
    this.#proven = connection
    if (this.#isGivenUp) this.#server.replaced?.()
    this.#isGivenUp = false
  }

  /** A retired connection is closed with its last request: one that refuses every request must not stay open each time. */
  #land(flight: Entry<Flight<Opened>>): void {
    if (!this.#flights.remove(flight)) return
    const { connection } = flight.value
    const others = (this.#used.get(connection) ?? 1) - 1
    if (others > 0) this.#used.set(connection, others)
    else {
      this.#used.delete(connection)
      if (this.#retired.has(connection)) this.#discard(connection)
    }
  }

  #checkFlights(now: number): number {
    let next = Number.POSITIVE_INFINITY
    for (const flight of this.#flights.values()) {
      if (now >= flight.sent + LONGEST_REQUEST) flight.giveUp(new NoAnswer(LONGEST_REQUEST))
      else {
        if (now >= flight.due) this.#replaceUnresponsive(flight)
        next = Math.min(next, flight.due)
      }
    }
    return next
  }

  #replaceUnresponsive(flight: Flight<Opened>): void {
    flight.due = this.#replace(flight.connection, flight.patience) ?? flight.sent + LONGEST_REQUEST
    flight.onUnresponsive?.()
  }

  /** Returns when to try again, if it is too early. */
  #replace(connection: Opened, patience?: number): number | undefined {
    if (this.#current !== connection || this.#end.signal.aborted) return undefined
    const mayHang = this.#proven !== connection && this.#retired.size >= MOST_RETIRED
    if (mayHang && performance.now() < this.#openedAt + PATIENCE) return this.#openedAt + PATIENCE
    this.#open(patience).catch(() => {}) // the next request reports the reason
    return undefined
  }

  #retire(): void {
    const connection = this.#current
    this.#current = undefined
    if (!connection) return
    if (connection.isOpen()) this.#isGivenUp = true
    if (!connection.isOpen() || !this.#used.has(connection)) {
      connection.close() // no answer can come
      return
    }
    this.#retired.add(connection)
    if (this.#proven !== connection) return
    // The server has answered on newer connections while the oldest one hung.
    for (const oldest of this.#retired) if (this.#retired.size > MOST_RETIRED) this.#discard(oldest)
  }

  #discard(connection: Opened): void {
    connection.close()
    this.#retired.delete(connection)
  }
}

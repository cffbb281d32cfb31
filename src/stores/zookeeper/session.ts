import { LeaseError } from '../../contract/errors.ts'
import { type Clock, LONGEST_REQUEST } from '../../contract/time.ts'
import { closed } from '../shared/closed.ts'
import { Connection, type Server, type Way } from './connection.ts'
import { Disconnected, Expired, failure, Refused } from './failure.ts'
import { closeSession, type Request } from './protocol.ts'

/** Where and how an ensemble is reached. */
export interface Ensemble extends Way {
  readonly servers: readonly Server[]
}

/** What is told of a session. */
export interface Listener {
  /** Connected, for the first time or again: nothing else is sent before this is done. Repairs what may be half done. */
  recover(connection: Connection): Promise<void>
  /** A watched node changed or went. */
  onEvent(path: string): void
  /** What was under way has failed, and what was watched is not any more. */
  onDisconnect(): void
}

/** Milliseconds of silence after which another server is tried. */
const [SHORTEST_PATIENCE, LONGEST_PATIENCE] = [200, 2_000]

/** Milliseconds: the longest that the protocol can say. */
export const LONGEST_SESSION = 0x7fff_ffff

/**
 * One session: it lives on the server while it is heard of, and the nodes that it made live with it. Nothing is sent
 * unless somebody asks for something, so that a process that asks no more loses its leases.
 */
export class Session {
  /** Is it over, so that its nodes are gone? */
  isOver = false
  readonly #ensemble: Ensemble
  readonly #wanted: number
  /** It counts the time for which this machine sleeps, as the server does. */
  readonly #clock: Clock
  readonly #listener: Listener
  #connection: Connection | undefined
  #opening: Promise<Connection> | undefined
  #id = 0n
  #password: Uint8Array = new Uint8Array(16)
  #timeout: number
  #lastZxid = 0n
  /** The latest moment of which it is certain that the leader has heard of this session at it, or later. */
  #heardAt = Number.NEGATIVE_INFINITY
  /** When transactions left that were answered on this connection, the oldest first. */
  #answered: number[] = []
  /** The server to be tried first; all begin somewhere else. */
  #next: number
  #isClosed = false

  /** `timeout`: milliseconds to ask for. */
  constructor(ensemble: Ensemble, timeout: number, clock: Clock, listener: Listener) {
    this.#ensemble = ensemble
    this.#wanted = timeout
    this.#timeout = this.#wanted
    this.#clock = clock
    this.#listener = listener
    this.#next = Math.floor(Math.random() * ensemble.servers.length)
  }

  /** 0n until it is first connected. */
  get id(): bigint {
    return this.#id
  }

  /** Milliseconds that the server granted; those asked for until it is connected. */
  get timeout(): number {
    return this.#timeout
  }

  /** Until when, by the clock, the leader keeps the nodes of this session for certain. */
  get safeUntil(): number {
    return this.#heardAt + this.#timeout
  }

  /**
   * A connection, on which the leader is known to keep the session for another `least` ms. Rejects `Expired` if the
   * session is over, else a `LeaseError`.
   */
  async connection(least = 0): Promise<Connection> {
    if (this.#isClosed) throw closed()
    if (this.isOver) throw new Expired('it ended before')
    const connection = this.#connection
    // To attach the session anew tells the leader: a follower does not answer that by itself.
    if (!this.#opening && connection?.isOpen && this.safeUntil - this.#clock.now() >= least) return connection
    this.#opening ??= this.#open().finally(() => {
      this.#opening = undefined
    })
    return this.#opening
  }

  /** Rejects `Refused`, `Expired`, or a `LeaseError`. */
  async send<Answer>(connection: Connection, request: Request<Answer>): Promise<Answer> {
    const sent = this.#clock.now()
    try {
      const answer = await connection.send(request)
      if (request.writes && connection === this.#connection) this.#hear(sent)
      return answer
    } catch (error) {
      throw this.#judge(error, true)
    }
  }

  /** With `end` the server is told, which deletes its nodes; else they go when it is not heard of for long enough. */
  async close(end: boolean): Promise<void> {
    this.#isClosed = true
    const connection = this.#connection
    if (end && connection?.isOpen) await connection.send(closeSession()).catch(() => {})
    connection?.end(closed())
    await this.#opening?.catch(() => {})
  }

  /**
   * A follower answers transactions before it has told the leader that the session lives: it tells when the leader asks,
   * every half tick. So one that was answered proves only that the leader has heard of one that left half a tick
   * before. No session is shorter than two ticks unless the server was told so: a third of it is more than half a tick.
   */
  #hear(sent: number): void {
    const proven = sent - this.#timeout / 3
    while (this.#answered.length > 1 && (this.#answered[1] as number) <= proven) this.#answered.shift()
    const oldest = this.#answered[0]
    if (oldest !== undefined && oldest <= proven) this.#heardAt = Math.max(this.#heardAt, oldest)
    // A few are enough, however many there are.
    if (sent - (this.#answered.at(-1) ?? Number.NEGATIVE_INFINITY) >= this.#timeout / 24) this.#answered.push(sent)
  }

  async #open(): Promise<Connection> {
    await this.#connection?.idle()
    this.#connection?.end(new Disconnected('it is replaced'))
    const { servers } = this.#ensemble
    const failures: string[] = []
    for (let tries = 0; tries < servers.length; tries++) {
      const server = servers[this.#next % servers.length] as Server
      try {
        return await this.#attach(server)
      } catch (error) {
        this.#next += 1
        const reason = this.#judge(error, false)
        if (reason instanceof Expired || error instanceof Refused || this.#isClosed) throw reason
        failures.push(`${server.host}:${server.port}: ${error instanceof Error ? error.message : String(error)}`)
      }
    }
    throw new LeaseError('STORE_UNAVAILABLE', `ZooKeeper cannot be reached: ${failures.join('; ')}`)
  }

  async #attach(server: Server): Promise<Connection> {
    const sent = this.#clock.now()
    const [timeout, id, password] = [this.#wanted, this.#id, this.#password]
    // A server that is behind this refuses: for ever, where data was lost, without ever saying that the session is over.
    const lastZxid = sent < this.safeUntil ? this.#lastZxid : 0n
    const patience = Math.min(Math.max(this.#timeout / 8, SHORTEST_PATIENCE), LONGEST_PATIENCE, LONGEST_REQUEST)
    const connection = await Connection.open(server, this.#ensemble, { timeout, id, password, lastZxid }, patience)
    if (this.#isClosed) {
      connection.end(closed())
      throw closed()
    }
    if (id !== 0n && connection.id !== id) {
      connection.end(new Disconnected('it has another session'))
      throw new Expired('the server began another')
    }
    this.#id = connection.id
    this.#password = connection.password
    this.#timeout = connection.timeout
    this.#heardAt = sent
    this.#answered = [sent]
    this.#connection = connection
    connection.onEvent = path => this.#listener.onEvent(path)
    connection.onEnd = () => {
      this.#lastZxid = connection.lastZxid
      this.#listener.onDisconnect()
    }
    try {
      await this.#listener.recover(connection)
    } catch (error) {
      connection.end(new Disconnected('what was half done could not be repaired'))
      throw error
    }
    return connection
  }

  #judge(error: unknown, sent: boolean): unknown {
    if (this.#isClosed) return closed()
    if (error instanceof Expired) this.isOver = true
    if (error instanceof Expired || (sent && error instanceof Refused)) return error
    return failure(error, sent)
  }
}

/**
 * Milliseconds of session that leases of a ttl need. A renewal is sure to count from 2/3 of the ttl before it, as beats
 * are a third apart and a transaction proves the last but one: so 5/3 leave a whole ttl.
 */
export function needed(ttl: number): number {
  return (5 * ttl) / 3
}

/** The session to ask for: in steps of an eighth, so that leases of many a ttl share few. */
export function sessionFor(ttl: number): number {
  const step = 2 ** Math.max(Math.floor(Math.log2(needed(ttl))) - 3, 0)
  return Math.min(Math.ceil(needed(ttl) / step) * step, LONGEST_SESSION)
}

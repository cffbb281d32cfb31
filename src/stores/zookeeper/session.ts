import { inRootContext } from '../../contract/root-context.ts'
import type { Clock } from '../../contract/time.ts'
import { closed, noAnswerFrom, textOf } from '../wire/failure.ts'
import { isPlain } from '../wire/plain.ts'
import { Connection, type Server, type Way } from './connection.ts'
import { Disconnected, Expired, failure, Refused } from './failure.ts'
import { closeSession, type Request } from './protocol.ts'

/** The servers of an ensemble, and the options for connections to them. */
export interface Ensemble extends Way {
  readonly servers: readonly Server[]
}

/** Receives the events of a session. */
export interface Listener {
  /**
   * The session is connected, for the first time or again. Repairs what may be half done. Nothing else is sent until this
   * resolves.
   */
  recover(connection: Connection): Promise<void>
  /** A watched node changed or was deleted. */
  onEvent(path: string, connection: Connection): void
  /** Requests in flight have failed, and watches are lost. */
  onDisconnect(): void
}

/** Milliseconds after which another server is tried: without an answer, and while connecting. */
const [SHORTEST_PATIENCE, LONGEST_PATIENCE, LONGEST_OPENING] = [200, 1_000, 2_000]

/**
 * The question and answer by which a server shows that it does not use TLS. It answers even if it does not serve, or
 * refuses the question.
 */
const STATUS = { ask: 'srvr', answer: /^(Zookeeper|This ZooKeeper|srvr is not)/ }

/** Milliseconds: the longest session that the protocol can express. */
export const LONGEST_SESSION = 0x7fff_ffff

/**
 * One session. The server keeps it, and the nodes that it created, while requests arrive. Nothing is sent unless a claim
 * asks, so a process that stops asking loses its leases.
 */
export class Session {
  /** Has the session ended? Then its nodes are gone. */
  isOver = false
  readonly #ensemble: Ensemble
  readonly #wanted: number
  /** This clock includes the time for which the machine sleeps, as the server's does. */
  readonly #clock: Clock
  readonly #listener: Listener
  #connection: Connection | undefined
  #opening: Promise<Connection> | undefined
  #id = 0n
  #password: Uint8Array = new Uint8Array(16)
  #timeout: number
  #lastZxid = 0n
  /** How often in a row no server let it connect in time. It then takes longer, because they may be far away. */
  #failures = 0
  /** The leader has certainly received a request of this session at this time or later. */
  #heardAt = Number.NEGATIVE_INFINITY
  /** The times when answered transactions of this connection were sent, the oldest first. */
  #answered: number[] = []
  /** The server to try first. Each session starts at a random one. */
  #next: number
  #isClosed = false
  /** Ends an attempt to connect. */
  readonly #closing = new AbortController()

  /** `timeout`: the milliseconds to request. */
  constructor(ensemble: Ensemble, timeout: number, clock: Clock, listener: Listener) {
    this.#ensemble = ensemble
    this.#wanted = timeout
    this.#timeout = this.#wanted
    this.#clock = clock
    this.#listener = listener
    this.#next = Math.floor(Math.random() * ensemble.servers.length)
  }

  /** The id of the session. 0n until it is first connected. */
  get id(): bigint {
    return this.#id
  }

  /** The length of the session in milliseconds: as requested, and once connected as the server granted it. */
  get timeout(): number {
    return this.#timeout
  }

  /** The time until which the leader certainly keeps the nodes of this session. */
  get safeUntil(): number {
    return this.#heardAt + this.#timeout
  }

  /**
   * Resolves to a connection when the leader certainly keeps the session for another `least` ms. Rejects `Expired` if the
   * session has ended, and otherwise a `LeaseError`.
   */
  async connection(least = 0): Promise<Connection> {
    if (this.#isClosed) throw closed()
    if (this.isOver) throw new Expired('it had ended before the request')
    const connection = this.#connection
    // Attaching the session again reaches the leader: a follower does not answer that alone.
    if (!this.#opening && connection?.isOpen && this.safeUntil - this.#clock.now() >= least) return connection
    this.#opening ??= inRootContext(() => this.#open()).finally(() => {
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

  /** With `end` the server ends the session and deletes its nodes. Otherwise they last until the session expires. */
  async close(end: boolean): Promise<void> {
    this.#isClosed = true
    const connection = this.#connection
    if (end && connection?.isOpen) await connection.send(closeSession()).catch(() => {})
    connection?.end(closed())
    this.#closing.abort()
    await this.#opening?.catch(() => {})
  }

  /**
   * Records that a transaction was answered. A follower answers transactions before it reports to the leader that the
   * session is alive, which it does every half tick. So an answer proves only that the leader received a transaction that
   * was sent half a tick earlier. By default no session is shorter than two ticks, and a third of that is more than half a
   * tick.
   */
  #hear(sent: number): void {
    const proven = sent - this.#timeout / 3
    while (this.#answered.length > 1 && (this.#answered[1] as number) <= proven) this.#answered.shift()
    const oldest = this.#answered[0]
    if (oldest !== undefined && oldest <= proven) this.#heardAt = Math.max(this.#heardAt, oldest)
    // It is enough to remember a few of them.
    if (sent - (this.#answered.at(-1) ?? Number.NEGATIVE_INFINITY) >= this.#timeout / 24) this.#answered.push(sent)
  }

  async #open(): Promise<Connection> {
    await this.#connection?.idle()
    this.#connection?.end(new Disconnected('it was replaced'))
    const { servers } = this.#ensemble
    const { signal } = this.#closing
    const failures: string[] = []
    for (let attempt = 0; attempt < servers.length; attempt++) {
      if (this.#isClosed) throw closed()
      const server = servers[this.#next % servers.length] as Server
      try {
        return await this.#attach(server)
      } catch (error) {
        this.#next += 1
        const reason = this.#judge(error, false)
        if (reason instanceof Expired || error instanceof Refused || this.#isClosed) throw reason
        const isWithoutTls = this.#ensemble.tls && this.#id === 0n && (await isPlain(server, STATUS, signal))
        const why = isWithoutTls ? 'it does not speak TLS' : textOf(error)
        failures.push(`${server.host}:${server.port}: ${why}`)
      }
    }
    this.#failures += 1
    throw noAnswerFrom('ZooKeeper', new Error(failures.join('; ')), false)
  }

  async #attach(server: Server): Promise<Connection> {
    const sent = this.#clock.now()
    const [timeout, id, password] = [this.#wanted, this.#id, this.#password]
    // A server that lags behind refuses the session. After a loss of data it would refuse it forever.
    const lastZxid = sent < this.safeUntil ? this.#lastZxid : 0n
    const share = Math.max(this.#timeout / 8, SHORTEST_PATIENCE)
    const opening = Math.min(share * 2 ** this.#failures, LONGEST_OPENING)
    const patience = Math.min(share, LONGEST_PATIENCE)
    const handshake = { timeout, id, password, lastZxid }
    const { signal } = this.#closing
    const connection = await Connection.open(server, this.#ensemble, handshake, patience, opening, signal)
    if (this.#isClosed) {
      connection.end(closed())
      throw closed()
    }
    if (id !== 0n && connection.id !== id) {
      connection.end(new Disconnected('it has another session'))
      throw new Expired('the server began another one')
    }
    if (this.#clock.now() - sent < share / 2) this.#failures = 0
    this.#id = connection.id
    this.#password = connection.password
    this.#timeout = connection.timeout
    this.#heardAt = sent
    this.#answered = [sent]
    this.#connection = connection
    connection.onEvent = path => this.#listener.onEvent(path, connection)
    connection.onEnd = () => {
      this.#lastZxid = connection.lastZxid
      this.#listener.onDisconnect()
    }
    try {
      await this.#listener.recover(connection)
    } catch (error) {
      connection.end(new Disconnected('incomplete requests could not be cleaned up'))
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
 * The session that a lease needs, in milliseconds. Heartbeats are a third of the ttl apart, and an answer proves only the
 * heartbeat before the last one. So at a renewal the session has certainly been kept alive within the last 2/3 of the ttl.
 * A session of 5/3 of the ttl then leaves a whole ttl.
 */
export function sessionNeeded(ttl: number): number {
  return (5 * ttl) / 3
}

/** The longest session of a lease as a multiple of its ttl: 5/3, rounded up by at most an eighth. */
export const SESSION_FACTOR: number = (5 / 3) * (9 / 8)

/** The session to request, rounded in steps of an eighth, so that leases of similar ttls share a session. */
export function sessionFor(ttl: number): number {
  const step = 2 ** Math.max(Math.floor(Math.log2(sessionNeeded(ttl))) - 3, 0)
  return Math.min(Math.ceil(sessionNeeded(ttl) / step) * step, LONGEST_SESSION)
}

import { connect as connectTcp, isIP, type Socket } from 'node:net'
import { setImmediate } from 'node:timers/promises'
import { type ConnectionOptions, connect as connectTls } from 'node:tls'
import { textOf } from '../wire/failure.ts'
import { lookup } from '../wire/lookup.ts'
import { afterReads, FlightTimer, NoAnswer } from '../wire/timeouts.ts'
import { Disconnected, Expired, Refused } from './failure.ts'
import { Frames, Malformed, Reader, Writer } from './jute.ts'
import {
  authXid,
  code,
  eventXid,
  type Handshake,
  type Request,
  readHandshake,
  writeAuth,
  writeHandshake,
} from './protocol.ts'

export interface Server {
  readonly host: string
  readonly port: number
}

/** The options for connections to the servers. */
export interface Way {
  readonly tls: ConnectionOptions | undefined
  readonly auth: { readonly user: string; readonly password: string } | undefined
}

/** The longest frame in bytes: enough for a node with 300,000 children. The server's own limit is 1 MB by default. */
const LONGEST_FRAME = 32 * 1_024 * 1_024

interface Flight {
  readonly xid: number
  readonly sent: number
  land(from: Reader): void
  fail(error: Error): void
}

/** One connection to one server, for one session. The server processes and answers requests in order. */
export class Connection {
  /** The id of the session at the server. */
  id = 0n
  password: Uint8Array = new Uint8Array(16)
  /** The length of the session in milliseconds, as the server granted it. */
  timeout = 0
  /** Milliseconds that the last request took. */
  roundTrip = 0
  lastZxid: bigint
  /** Called with the path of a watched node that changed or was deleted. */
  onEvent: (path: string) => void = () => {}
  /** Called once, after all requests in flight have failed. */
  onEnd: () => void = () => {}
  readonly #socket: Socket
  readonly #frames = new Frames(LONGEST_FRAME)
  readonly #patience: number
  readonly #flights: Flight[] = []
  readonly #onIdle: (() => void)[] = []
  #onHandshake: ((from: Reader) => void) | undefined
  #xid = 0
  /** The time when the server last sent something. */
  #heardAt = 0
  #error: Error | undefined
  readonly #timer = new FlightTimer(now => this.#check(now))
  #corked = false

  private constructor(socket: Socket, patience: number, lastZxid: bigint) {
    this.#socket = socket
    this.#patience = patience
    this.lastZxid = lastZxid
    socket.unref()
    socket.setNoDelay(true)
    socket.on('data', piece => this.#receive(piece))
    socket.on('error', error => this.end(new Disconnected(this.#whyEnded(error))))
    socket.on('close', () => this.end(new Disconnected(this.#whyEnded())))
  }

  /**
   * Connects within `opening` ms. The connection ends when a later answer takes longer than `patience` ms, or
   * `signal` aborts. Rejects `Expired` if the session is over, otherwise `Disconnected`.
   */
  static open(
    server: Server,
    way: Way,
    handshake: Handshake,
    patience: number,
    opening: number = patience,
    signal?: AbortSignal,
  ): Promise<Connection> {
    const { tls, auth } = way
    const target = { host: server.host, port: server.port, lookup }
    // An IP address must not be sent as a server name (RFC 6066), and Node warns about it. The certificate is still checked
    // against it.
    const name = isIP(server.host) ? {} : { servername: server.host }
    const socket = tls ? connectTls({ ...name, ...tls, ...target }) : connectTcp(target)
    const connection = new Connection(socket, patience, handshake.lastZxid)
    if (signal) {
      const stop = (): void => connection.end(new Disconnected('it was given up'))
      signal.addEventListener('abort', stop)
      socket.once('close', () => signal.removeEventListener('abort', stop)) // net.connect() would leave its own
    }
    return new Promise((resolve, reject) => {
      const stopTimeout = afterReads(opening, () => connection.end(noAnswer(opening)))
      connection.onEnd = () => {
        stopTimeout()
        reject(connection.#error as Error)
      }
      let sent = 0
      connection.#onHandshake = from => {
        stopTimeout()
        connection.roundTrip = performance.now() - sent
        const { timeout, id, password } = readHandshake(from)
        if (timeout <= 0) {
          connection.end(new Expired('the server no longer knows the session'))
          return
        }
        Object.assign(connection, { timeout, id, password, onEnd: () => {} })
        resolve(connection)
      }
      socket.once(tls ? 'secureConnect' : 'connect', () => {
        sent = performance.now()
        connection.#write(to => writeHandshake(to, handshake))
        if (auth) connection.#write(to => writeAuth(to, auth.user, auth.password))
      })
    })
  }

  get isOpen(): boolean {
    return this.#error === undefined
  }

  /** Rejects `Refused` with the server's error, or `Disconnected` if the outcome is unknown. */
  send<Answer>(request: Request<Answer>): Promise<Answer> {
    return new Promise((resolve, reject) => {
      if (this.#error) {
        reject(this.#error)
        return
      }
      this.#xid = (this.#xid % 0x7fff_ffff) + 1
      const xid = this.#xid
      const sent = performance.now()
      const land = (from: Reader): void => resolve(request.read(from, error => this.#endIfOver(error)))
      this.#flights.push({ xid, sent, land, fail: reject })
      this.#write(to => request.write(to.int(xid).int(request.op)))
      this.#timer.watch(sent + this.#patience)
    })
  }

  /** Resolves once no request is in flight and the last answer caused no new one, or after the patience. */
  async idle(): Promise<void> {
    const end = performance.now() + this.#patience
    do {
      if (this.#flights.length > 0) await new Promise<void>(resolve => this.#onIdle.push(resolve))
      await setImmediate()
    } while (this.#flights.length > 0 && performance.now() < end)
  }

  /** Idempotent. Requests in flight reject with `error`. */
  end(error: Error): void {
    if (this.#error) return
    this.#error = error
    this.#timer.stop()
    this.#socket.destroy()
    for (const { fail } of this.#flights.splice(0)) fail(error)
    this.#tellIdle()
    this.onEnd()
  }

  /** Explains why the connection ended. A server that refuses a connection closes it without an answer. */
  #whyEnded(error?: NodeJS.ErrnoException): string {
    const isClosed = error === undefined || error.code === 'EPIPE' || error.code === 'ECONNRESET'
    if (error?.code?.startsWith('ERR_SSL'))
      return `TLS failed: ${(error as { reason?: string }).reason ?? error.message}`
    if (!isClosed) return textOf(error)
    if (!this.#onHandshake) return 'the server closed the connection'
    const causes =
      'it has no majority, lags behind what this client has seen, has reached maxClientCnxns, or differs in TLS'
    return `the server closed the connection at once (${causes})`
  }

  /** Sends the requests of one turn of the event loop together. */
  #write(write: (to: Writer) => void): void {
    if (!this.#corked) {
      this.#corked = true
      this.#socket.cork()
      process.nextTick(() => {
        this.#corked = false
        this.#socket.uncork()
      })
    }
    const writer = new Writer()
    write(writer)
    this.#socket.write(writer.frame())
  }

  #receive(piece: Buffer): void {
    this.#heardAt = performance.now()
    try {
      for (const frame of this.#frames.add(piece)) if (!this.#error) this.#take(new Reader(frame))
    } catch (error) {
      if (!(error instanceof Malformed)) throw error
      this.end(new Disconnected(`the server sent invalid data (${error.message}): check that it is ZooKeeper`))
    }
  }

  #take(from: Reader): void {
    if (this.#onHandshake) {
      const take = this.#onHandshake
      this.#onHandshake = undefined
      take(from)
      return
    }
    const xid = from.int()
    const zxid = from.long()
    const error = from.int()
    if (xid === eventXid) {
      from.int() // type of the event
      from.int() // state of the session
      this.onEvent(from.string())
    } else if (xid !== authXid) {
      if (zxid > this.lastZxid) this.lastZxid = zxid
      this.#answer(xid, error, from)
    } else if (error !== 0) this.end(new Refused(error))
  }

  #answer(xid: number, error: number, from: Reader): void {
    const flight = this.#flights[0]
    if (flight?.xid !== xid) throw new Malformed(`an answer has xid ${xid} instead of ${flight?.xid ?? 'none'}`)
    this.roundTrip = performance.now() - flight.sent
    this.#endIfOver(error)
    // A failed transaction also has results.
    if (error === 0 || from.remaining > 0) flight.land(from)
    else flight.fail(new Refused(error))
    this.#flights.shift()
    if (this.#flights.length === 0) this.#tellIdle()
  }

  /**
   * Ends the connection if the session has expired or moved to another server. All requests in flight reject with that,
   * including the one that is being answered.
   */
  #endIfOver(error: number): void {
    if (error === code.sessionExpired) this.end(new Expired('the server ended it'))
    if (error === code.sessionMoved) this.end(new Disconnected('the session moved to another server'))
  }

  #tellIdle(): void {
    for (const resolve of this.#onIdle.splice(0)) resolve()
  }

  /** Ends the connection if an answer is overdue. Otherwise returns the time when the next answer becomes overdue. */
  #check(now: number): number {
    const due = this.#silentSince() + this.#patience
    if (due <= now) this.end(noAnswer(this.#patience))
    return this.#error ? Number.POSITIVE_INFINITY : due
  }

  /**
   * The time since when the server has not responded. Many requests at once take long, but their answers arrive meanwhile.
   */
  #silentSince(): number {
    return Math.max(this.#flights[0]?.sent ?? Number.POSITIVE_INFINITY, this.#heardAt)
  }
}

function noAnswer(limit: number): Disconnected {
  return new Disconnected(new NoAnswer(limit).message)
}

import { once } from 'node:events'
import { connect, createServer, type Server, type Socket } from 'node:net'
import { Direction, Pipe, resetSocket } from './pipe.ts'
import { type Port, reservePort } from './port.ts'

interface Target {
  readonly host?: string
  readonly port: number
}

interface Rule {
  readonly match: string | RegExp
  act(client: Socket, server: Socket, down: Pipe): void
}

interface Connection {
  /** Its first bytes. */
  head: string
  readonly pipes: readonly Pipe[]
}

// A rule sees the last bytes that a connection sent, because a request may come in several pieces.
const LONGEST_REQUEST = 65_536

/** A TCP proxy on its own port in front of `target`, which may be down and restart. */
export async function startProxy(target: Target): Promise<TcpProxy> {
  const proxy = new TcpProxy(target, await reservePort())
  await proxy.accept()
  return proxy
}

/** The network between clients and one server, with faults on demand. It runs in this process. */
export class TcpProxy implements AsyncDisposable {
  readonly host = '127.0.0.1'
  readonly port: number
  /** From the clients to the server: requests. */
  readonly up: Direction = new Direction()
  /** From the server to the clients: replies. */
  readonly down: Direction = new Direction()
  /** Connections accepted since the start. */
  accepted = 0
  readonly #target: Target
  readonly #reservation: Port
  readonly #clients = new Set<Socket>()
  readonly #servers = new Set<Socket>()
  readonly #rules = new Set<Rule>()
  readonly #connections = new Set<Connection>()
  #cut: RegExp | undefined
  #listener: Server | undefined

  constructor(target: Target, reservation: Port) {
    this.#target = target
    this.#reservation = reservation
    this.port = reservation.number
  }

  /** Open connections of clients. */
  get connections(): number {
    return this.#clients.size
  }

  /** Refuses new connections until `accept()`. Open ones continue. */
  async refuse(): Promise<void> {
    this.#listener?.close()
    this.#listener = undefined
  }

  /** Ends `refuse()`. */
  async accept(): Promise<void> {
    if (this.#listener) return
    this.#listener = createServer({ allowHalfOpen: true, noDelay: true }, client => this.#connect(client))
    this.#listener.listen(this.port, this.host)
    await once(this.#listener, 'listening')
  }

  /** Resets the open connections on both sides. New ones are served. */
  reset(): void {
    for (const socket of [...this.#clients, ...this.#servers]) resetSocket(socket)
  }

  /**
   * Cuts off all connections, open and future, whose first bytes match: nothing passes, and no side is notified.
   * `heal()` ends it.
   */
  cut(match: RegExp): void {
    this.#cut = match
    for (const connection of this.#connections) this.#cutOff(connection)
  }

  /** Resets the connections that were cut off, because a stream must not have holes. */
  heal(): void {
    this.#cut = undefined
    for (const { pipes } of this.#connections) if (pipes.every(pipe => pipe.isDeaf)) pipes[0]?.resetBoth()
  }

  /**
   * Delivers the next request that contains `match` and resets the connection of its client before the reply. Resolves
   * when the server has carried out the request and closed its end.
   */
  cutAfterRequest(match: string | RegExp): Promise<void> {
    return new Promise(resolve => {
      this.#rules.add({
        match,
        act(client, server) {
          resetSocket(client)
          // A reset would discard a request that the server has not read yet. An end comes after it.
          server.on('data', () => server.end())
          server.on('end', () => server.end())
          server.on('close', () => resolve())
        },
      })
    })
  }

  /**
   * Delivers the next request that contains `match` and drops its reply, with all later ones on that connection, which
   * stays open. Resolves when the reply is lost.
   */
  loseReply(match: string | RegExp): Promise<void> {
    return new Promise(resolve => {
      this.#rules.add({
        match,
        act(_client, server, down) {
          down.deafen()
          server.once('data', () => resolve())
        },
      })
    })
  }

  /** Resets all connections and frees the port. May be called twice. */
  async stop(): Promise<void> {
    await this.refuse()
    this.reset()
    await this.#reservation.release()
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop()
  }

  #cutOff({ head, pipes }: Connection): void {
    if (this.#cut?.test(head)) for (const pipe of pipes) pipe.deafen()
  }

  #connect(client: Socket): void {
    this.accepted += 1
    const server = connect({ host: '127.0.0.1', noDelay: true, allowHalfOpen: true, ...this.#target })
    track(client, this.#clients)
    track(server, this.#servers)
    const up = new Pipe(client, server, this.up)
    const down = new Pipe(server, client, this.down)
    const connection = { head: '', pipes: [up, down] }
    this.#connections.add(connection)
    for (const [socket, other] of [[client, server] as const, [server, client] as const])
      socket.on('close', () => other.closed && this.#connections.delete(connection))
    this.#cutOff(connection)
    client.prependOnceListener('data', (piece: Buffer) => {
      connection.head = piece.toString('latin1')
      this.#cutOff(connection)
    })
    let sent = ''
    up.onDelivered = piece => {
      if (this.#rules.size === 0) {
        sent = ''
        return
      }
      sent = (sent + piece.toString()).slice(-LONGEST_REQUEST)
      for (const rule of this.#rules) {
        if (!contains(sent, rule.match)) continue
        this.#rules.delete(rule)
        rule.act(client, server, down)
      }
    }
  }
}

// Names have braces and brackets, so a string is not a regular expression.
function contains(text: string, match: string | RegExp): boolean {
  return typeof match === 'string' ? text.includes(match) : text.search(match) >= 0
}

function track(socket: Socket, sockets: Set<Socket>): void {
  sockets.add(socket)
  socket.on('close', () => sockets.delete(socket))
}

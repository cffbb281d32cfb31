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

// A rule sees this much of the end of what one connection has sent: a request may come in several pieces.
const LONGEST_REQUEST = 65_536

/** A TCP proxy on a port of its own in front of `target`, which may be down, and go away and come back. */
export async function startProxy(target: Target): Promise<TcpProxy> {
  const proxy = new TcpProxy(target, await reservePort())
  await proxy.accept()
  return proxy
}

/** The network between clients and one server, with faults on demand. Lives in this process. */
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
  #listener: Server | undefined

  constructor(target: Target, reservation: Port) {
    this.#target = target
    this.#reservation = reservation
    this.port = reservation.number
  }

  /** Connections that clients have now. */
  get connections(): number {
    return this.#clients.size
  }

  /** Present connections go on, a new one gets ECONNREFUSED, until `accept()`. */
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

  /** Resets the present connections on both sides; new ones are served. */
  reset(): void {
    for (const socket of [...this.#clients, ...this.#servers]) resetSocket(socket)
  }

  /**
   * The next request that contains `match` is delivered and its client's connection reset before the reply. Resolves
   * when the server has carried the request out: it then answered into the void and closed its end.
   */
  cutAfterRequest(match: string | RegExp): Promise<void> {
    return new Promise(resolve => {
      this.#rules.add({
        match,
        act(client, server) {
          resetSocket(client)
          // A reset would make the server forget a request that it has not read yet; an end comes after it.
          server.on('data', () => server.end())
          server.on('end', () => server.end())
          server.on('close', () => resolve())
        },
      })
    })
  }

  /**
   * The next request that contains `match` is delivered and its reply lost, with all later ones on that connection,
   * which stays open. Resolves when the reply was lost.
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

  #connect(client: Socket): void {
    this.accepted += 1
    const server = connect({ host: '127.0.0.1', noDelay: true, allowHalfOpen: true, ...this.#target })
    track(client, this.#clients)
    track(server, this.#servers)
    const up = new Pipe(client, server, this.up)
    const down = new Pipe(server, client, this.down)
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

// search() would take a string for a regular expression, and names have braces and brackets.
function contains(text: string, match: string | RegExp): boolean {
  return typeof match === 'string' ? text.includes(match) : text.search(match) >= 0
}

function track(socket: Socket, sockets: Set<Socket>): void {
  sockets.add(socket)
  socket.on('close', () => sockets.delete(socket))
}

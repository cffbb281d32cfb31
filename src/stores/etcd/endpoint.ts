import { type ClientRequest, Agent as PlainAgent, request as plainRequest } from 'node:http'
import { Agent as SecureAgent, request as secureRequest } from 'node:https'
import { lookup } from '../wire/lookup.ts'
import { isPlain } from '../wire/plain.ts'
import { Answer } from './answer.ts'
import { Refusal } from './failure.ts'

/** Options for TLS: PEM text or buffers, as for `tls.connect`. */
export interface EtcdTls {
  /** Trusted certificate authorities. @default those of Node */
  readonly ca?: string | Buffer | readonly (string | Buffer)[] | undefined
  /** The certificate of this client, for mutual TLS. */
  readonly cert?: string | Buffer | undefined
  readonly key?: string | Buffer | undefined
  readonly passphrase?: string | undefined
  /** The name in the certificate of the server. @default the host of the endpoint */
  readonly servername?: string | undefined
}

export interface Address {
  readonly host: string
  readonly port: number
}

/** Receives the answer to one request: messages and then an end, or a failure at any time. */
export interface Listener {
  /** The request has a connection. Before that it waits for a free one. */
  onStart?(): void
  onMessage(message: unknown): void
  onEnd(): void
  /** `sent`: the request may have been processed. */
  onFailure(error: Error, sent: boolean): void
}

/**
 * The largest number of connections to one server. Over HTTP/1.1 each carries one request at a time. 32 keep a server busy,
 * and are no load when it hangs and all of them wait.
 */
const MOST_CONNECTIONS = 32

/** Only a server without TLS answers in this way. A server with TLS answers 400. */
const VERSION = { ask: 'GET /version HTTP/1.0\r\n\r\n', answer: /^HTTP\/1\.\d 200/ }

/** One server, reached over its own connections. They do not keep the process alive. */
export class Endpoint {
  readonly label: string
  readonly #address: Address
  readonly #target: object
  readonly #request: typeof plainRequest
  readonly #agent: PlainAgent
  readonly #streams: PlainAgent
  readonly #isSecure: boolean
  #hasServed = false

  constructor({ host, port }: Address, tls: EtcdTls | undefined) {
    this.label = `${host.includes(':') ? `[${host}]` : host}:${port}`
    this.#address = { host, port }
    this.#target = { host, port, lookup, ...tls }
    this.#isSecure = tls !== undefined
    this.#request = tls ? secureRequest : plainRequest
    const Agent = tls ? SecureAgent : PlainAgent
    this.#agent = new Agent({ keepAlive: true, maxSockets: MOST_CONNECTIONS, scheduling: 'lifo' })
    this.#streams = new Agent()
  }

  /**
   * Sends a request, and returns a function that cancels it. `isStream`: the answer has no end and needs its own
   * connection.
   */
  post(path: string, body: string, token: string | undefined, listener: Listener, isStream = false): () => void {
    const headers = {
      'content-type': 'application/json',
      'content-length': Buffer.byteLength(body),
      ...(token && { authorization: token }),
    }
    const agent = isStream ? this.#streams : this.#agent
    const request = this.#request({ ...this.#target, path: `/v3/${path}`, method: 'POST', headers, agent })
    let isOver = false
    let isWanted = true
    let sent = false
    const fail = (error: Error): void => {
      if (isOver) return
      isOver = true
      void this.#explained(error).then(explained => isWanted && listener.onFailure(explained, sent))
    }
    onConnected(request, () => {
      sent = true
    })
    request.once('socket', () => listener.onStart?.())
    request.on('error', fail)
    request.on('response', response => {
      this.#hasServed = true
      const answer = new Answer(response.statusCode, isStream, {
        onMessage(message) {
          if (!isOver) listener.onMessage(message)
        },
        onEnd() {
          if (isOver) return
          isOver = true
          listener.onEnd()
        },
        onFailure: fail,
        stop: () => request.destroy(),
      })
      response.setEncoding('utf8')
      response.on('error', fail)
      response.on('data', (chunk: string) => answer.read(chunk))
      response.on('end', () => answer.end())
      response.on('close', () => fail(new Error('the connection was closed')))
    })
    request.end(body)
    return () => {
      isOver = true
      isWanted = false
      request.destroy()
    }
  }

  /**
   * Adds a hint to the error. A server that closes the connection at the first request may expect TLS, or no TLS, but does
   * not say so.
   */
  async #explained(error: Error): Promise<Error> {
    if (this.#hasServed) return error
    if (/^Parse Error: Expected HTTP/.test(error.message)) return new Refusal(-1, `${error.message} from ${this.label}`)
    if (!/hang up|disconnected before secure|ECONNRESET|EPIPE/.test(error.message)) return error
    let hint = 'speaks TLS: etcds://'
    if (this.#isSecure) {
      if (await isPlain(this.#address, VERSION)) return new Error(`${this.label} does not speak TLS`, { cause: error })
      hint = error.message.includes('EPIPE')
        ? 'refuses the certificate of this client, which needs the extended key usage clientAuth'
        : 'lacks TLS: etcd://'
    }
    return new Error(`${error.message} by ${this.label}, which may be because it ${hint}`, { cause: error })
  }

  /** Closes the idle connections. They may be as dead as one that does not answer. */
  renew(): void {
    for (const sockets of Object.values(this.#agent.freeSockets)) for (const socket of sockets ?? []) socket.destroy()
  }

  close(): void {
    this.#agent.destroy()
    this.#streams.destroy()
  }
}

/** Lets the process end although the socket is open. Once the socket is connected, the request may be processed. */
function onConnected(request: ClientRequest, connected: () => void): void {
  request.once('socket', socket => {
    socket.unref()
    if (socket.connecting) socket.once('encrypted' in socket ? 'secureConnect' : 'connect', connected)
    else connected()
  })
}

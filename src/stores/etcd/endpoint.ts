import { type ClientRequest, Agent as PlainAgent, request as plainRequest } from 'node:http'
import { Agent as SecureAgent, request as secureRequest } from 'node:https'
import { Refusal } from './failure.ts'

/** Options for TLS: PEM text or buffers, as for `tls.connect`. */
export interface EtcdTls {
  /** Trusted authorities. @default those of Node */
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

/** Receives the answer to one request: messages, then an end; or a failure at any time. */
export interface Listener {
  /** The request has a connection. Until then it waits for a free one. */
  onStart?(): void
  onMessage(message: unknown): void
  onEnd(): void
  /** `sent`: the request may have been carried out. */
  onFailure(error: Error, sent: boolean): void
}

/**
 * Connections to one server. HTTP/1.1 carries one request at a time on each. 32 keep a server busy, and are no load when
 * it hangs and they all wait.
 */
const MOST_CONNECTIONS = 32

/** Characters of an answer, or of one message of a stream: as long as the queue of one name with 80,000 waiters. */
const LONGEST_ANSWER = 32 * 1_024 * 1_024
/** Characters of an error response. Messages show at most 200 of them. */
const LONGEST_REFUSAL = 64 * 1_024

/** One server, over its own connections. They do not keep the process alive. */
export class Endpoint {
  readonly label: string
  readonly #target: object
  readonly #request: typeof plainRequest
  readonly #agent: PlainAgent
  readonly #streams: PlainAgent
  readonly #isSecure: boolean
  #hasServed = false

  constructor({ host, port }: Address, tls: EtcdTls | undefined) {
    this.label = `${host.includes(':') ? `[${host}]` : host}:${port}`
    this.#target = { host, port, ...tls }
    this.#isSecure = tls !== undefined
    this.#request = tls ? secureRequest : plainRequest
    const Agent = tls ? SecureAgent : PlainAgent
    this.#agent = new Agent({ keepAlive: true, maxSockets: MOST_CONNECTIONS, scheduling: 'lifo' })
    this.#streams = new Agent()
  }

  /** Returns a function that gives the request up. `isStream`: the answer has no end and needs its own connection. */
  post(path: string, body: string, token: string | undefined, listener: Listener, isStream = false): () => void {
    const headers = {
      'content-type': 'application/json',
      'content-length': Buffer.byteLength(body),
      ...(token && { authorization: token }),
    }
    const agent = isStream ? this.#streams : this.#agent
    const request = this.#request({ ...this.#target, path: `/v3/${path}`, method: 'POST', headers, agent })
    let isOver = false
    let sent = false
    const fail = (error: Error): void => {
      if (isOver) return
      isOver = true
      listener.onFailure(this.#explained(error), sent)
    }
    onConnected(request, () => {
      sent = true
    })
    request.once('socket', () => listener.onStart?.())
    request.on('error', fail)
    request.on('response', response => {
      this.#hasServed = true
      response.setEncoding('utf8')
      response.on('error', fail)
      const isRefused = response.statusCode !== 200
      let rest = ''
      let length = 0
      let isEmpty = true
      const read = (text: string): void => {
        isEmpty = false
        try {
          const message = JSON.parse(text) as { error?: unknown; result?: unknown }
          if (message.error !== undefined) fail(refusalOf(message))
          else if (!isOver) listener.onMessage(message.result ?? message)
        } catch (error) {
          fail(error as Error)
          request.destroy() // the rest need not be read
        }
      }
      response.on('data', (chunk: string) => {
        length += chunk.length
        if (isRefused) rest += chunk
        else {
          // Only the new piece is searched. Searching a long line again with every piece would take quadratic time.
          const lines = chunk.split('\n')
          lines[0] = rest + lines[0]
          rest = lines.pop() ?? ''
          for (const line of lines) read(line)
          if (isStream) length = rest.length
        }
        if (length <= (isRefused ? LONGEST_REFUSAL : LONGEST_ANSWER)) return
        fail(isRefused ? refusalOfBody(response.statusCode, rest) : new Error('the answer is longer than 32 MB'))
        request.destroy()
      })
      response.on('end', () => {
        if (isRefused) return fail(refusalOfBody(response.statusCode, rest))
        if (rest.trim()) read(rest)
        if (isEmpty) return fail(new Error('the answer is empty'))
        if (isOver) return
        isOver = true
        listener.onEnd()
      })
      response.on('close', () => fail(new Error('the connection was closed')))
    })
    request.end(body)
    return () => {
      isOver = true
      request.destroy()
    }
  }

  /** A server that closes the connection at the first request may expect TLS, or none. It does not say so. */
  #explained(error: Error): Error {
    if (this.#hasServed || !/hang up|disconnected before secure|ECONNRESET/.test(error.message)) return error
    const hint = this.#isSecure ? 'does not speak TLS: etcd://' : 'speaks TLS: etcds://'
    return new Error(`${error.message} by ${this.label}, which may be because it ${hint}`, { cause: error })
  }

  close(): void {
    this.#agent.destroy()
    this.#streams.destroy()
  }
}

/** Lets the process end despite the socket. Once it is connected, the request may be carried out. */
function onConnected(request: ClientRequest, connected: () => void): void {
  request.once('socket', socket => {
    socket.unref()
    if (socket.connecting) socket.once('encrypted' in socket ? 'secureConnect' : 'connect', connected)
    else connected()
  })
}

function refusalOfBody(status: number | undefined, body: string): Refusal {
  let text = body.trim()
  try {
    const refusal = refusalOf(JSON.parse(body) as object)
    if (refusal.code !== -1) return refusal
    text = refusal.message
  } catch {
    // No JSON, so it does not come from etcd.
  }
  return new Refusal(-1, `HTTP ${status}${text && `: ${text}`}`)
}

/** Parses `{ error: text, code }` or `{ message, code }`, in streams `{ error: { message, grpc_code } }`. */
function refusalOf(body: object): Refusal {
  const { error } = body as { error?: unknown }
  const { message, code, grpc_code } = (typeof error === 'object' ? error : body) as Record<string, unknown>
  const text = [message, error].find(each => typeof each === 'string')
  return new Refusal(Number(grpc_code ?? code ?? -1), text ?? JSON.stringify(body))
}

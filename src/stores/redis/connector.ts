import { connect, type Socket } from 'node:net'
import { type ConnectionOptions, connect as connectTls } from 'node:tls'
import { lookup } from '../wire/lookup.ts'

interface Options {
  readonly host?: string | undefined
  readonly port?: number | undefined
  readonly family?: number | null | undefined
  readonly path?: string | null | undefined
  readonly tls?: ConnectionOptions | undefined
}

/**
 * The option `Connector` of ioredis and iovalkey. It connects like the default one, but resolves host names with `lookup`.
 */
export class Connector {
  connecting = false
  firstError: Error | undefined
  readonly #options: Options
  #stream: Socket | undefined

  constructor(options: Options) {
    this.#options = options
  }

  check(): boolean {
    return true
  }

  async connect(): Promise<Socket> {
    this.connecting = true
    const { host = 'localhost', port = 6379, family, path, tls } = this.#options
    const to = path ? { path } : { host, port, lookup, ...(family && { family }) }
    const stream = tls ? connectTls({ ...to, ...tls }) : connect(to)
    stream.once('error', error => {
      this.firstError = error
    })
    this.#stream = stream
    return stream
  }

  disconnect(): void {
    this.connecting = false
    this.#stream?.destroy()
  }
}

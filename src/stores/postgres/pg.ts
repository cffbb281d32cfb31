import { Socket } from 'node:net'
import { TLSSocket } from 'node:tls'
import { invalid } from '../../contract/check.ts'
import { Sequence } from '../../contract/sequence.ts'
import { LONGEST_REQUEST } from '../../contract/time.ts'
import type { Driver } from '../wire/connection.ts'
import { lookup } from '../wire/lookup.ts'
import type { Wire } from './client.ts'

interface Result {
  readonly rows: unknown[][]
}

interface Client {
  readonly processID: number | null
  readonly pipeline?: boolean
  connect(): Promise<unknown>
  /** Resolves to a list of results if there are several statements. */
  query(query: object): Promise<Result | Result[]>
  on(event: string, listener: (...args: never[]) => void): unknown
  end(): Promise<void>
  unref?(): void
  readonly connection?: { readonly stream?: { destroy?(): void } }
}

type Config = Record<string, unknown>
type Constructor = new (config: Config) => Client

/** These override the caller's options. The store has its own limits, by which it detects a dead connection. */
const OWN = {
  connectionTimeoutMillis: LONGEST_REQUEST,
  query_timeout: 0,
  binary: false,
  pipeline: true,
  keepAlive: true,
  keepAliveInitialDelayMillis: 1_000,
}

/** Leaves every value as the text that the server sent, whatever parsers are set. */
export const TEXT: { getTypeParser(): (value: string) => string } = { getTypeParser: () => String }

/** The driver for a `Pool` or a `Client` of pg. */
export function pg(client: object): Driver<Wire> | undefined {
  const { options, Client, connectionParameters: parameters } = client as Config
  if (typeof Client === 'function' && typeof options === 'object' && options !== null)
    return driver(Client as Constructor, options as Config)
  if (typeof parameters !== 'object' || parameters === null) return undefined
  const { password, ssl, enableChannelBinding, scramMaxIterations, connection } = client as Config
  const stream = (connection as { stream?: object } | undefined)?.stream
  // The function that made this stream is not kept, so our own connection would go elsewhere.
  if (stream && stream.constructor !== Socket && !(ssl && stream instanceof TLSSocket))
    throw invalid(
      'this Client of pg has a stream of its own, which it does not show: pass a Pool with the same options',
    )
  const more = { password, ssl, enableChannelBinding, scramMaxIterations }
  return driver(client.constructor as Constructor, { ...parameters, ...more })
}

function driver(Client: Constructor, options: Config): Driver<Wire> {
  // Secret properties are not enumerable.
  const { password, ssl } = options
  const name = { fallback_application_name: 'holdfast' }
  const own = {
    ...name,
    stream: socket,
    ...options,
    ...(password !== undefined && { password }),
    ...(ssl !== undefined && { ssl }),
    ...OWN,
  }
  return {
    async open(signal) {
      const client = new Client(own)
      // Without a listener, a connection error would end the process.
      client.on('error', () => {})
      const giveUp = (): void => destroy(client)
      signal.addEventListener('abort', giveUp)
      try {
        await client.connect()
      } catch (error) {
        destroy(client)
        throw error
      } finally {
        signal.removeEventListener('abort', giveUp)
      }
      // An idle connection does not keep the process alive. The core does that while a request waits for its answer.
      client.unref?.()
      return wire(client)
    },
  }
}

/** pg connects the socket that this returns, with a path or with a port and a host. */
function socket(): Socket {
  const own = new Socket()
  const connect = own.connect.bind(own)
  const connectTo = (to: number | string, host?: string): Socket =>
    typeof to === 'string' ? connect(to) : connect({ port: to, host: host ?? 'localhost', lookup })
  return Object.assign(own, { connect: connectTo })
}

function wire(client: Client): Wire {
  let isOpen = true
  const turns = new Sequence()
  // Versions that cannot pipeline would queue the query themselves, and some warn about that.
  const query = (config: object): Promise<Result | Result[]> =>
    client.pipeline ? client.query(config) : turns.run(() => client.query(config))
  client.on('end', () => {
    isOpen = false
  })
  client.on('error', () => {
    isOpen = false
  })
  return {
    pid: client.processID ?? undefined,
    async firstRow(text) {
      const results = await query({ text, rowMode: 'array', types: TEXT })
      const result = Array.isArray(results) ? results.at(-1) : results
      return result?.rows[0]
    },
    async listen(channel, notify) {
      client.on('notification', (message: { channel: string; payload?: string }) => {
        if (message.channel === channel) notify(message.payload ?? '')
      })
      await query({ text: `listen "${channel}"` })
    },
    onEnd: ended => void client.on('end', ended),
    isOpen: () => isOpen,
    close: () => destroy(client),
  }
}

/**
 * Closes the connection. It does not use `end()`, which waits for requests in flight and for a server that may not respond.
 */
function destroy(client: Client): void {
  client.end().catch(() => {})
  client.connection?.stream?.destroy?.()
}

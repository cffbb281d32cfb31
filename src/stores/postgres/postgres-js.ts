import { connect, type Socket } from 'node:net'
import { LONGEST_REQUEST } from '../../contract/time.ts'
import { load } from '../url/load.ts'
import type { Driver } from '../wire/connection.ts'
import { lookup } from '../wire/lookup.ts'
import { isPlain } from '../wire/plain.ts'
import type { Wire } from './client.ts'

interface Result extends Array<(Uint8Array | null)[]> {
  readonly state?: { readonly pid: number | null }
}

interface Query extends Promise<Result> {
  /** Resolves to the bytes of each value; for several statements, to a list of results. */
  raw(): Promise<Result | Result[]>
}

interface Sql {
  readonly options: Options
  unsafe(text: string): Query
  listen(channel: string, notified: (message: string) => void): Promise<unknown>
  end(options: { timeout: number }): Promise<void>
}

interface Options {
  readonly host: readonly string[]
  readonly port: readonly number[]
  readonly path?: string | false
  readonly socket?: (options: object) => unknown
  readonly ssl?: boolean | string | object
}

/** The request for TLS, which consists of its length and its code, and the answer `N` that refuses it. */
const TLS_REQUEST = { ask: Buffer.from([0, 0, 0, 8, 4, 210, 22, 47]), answer: /^N/ }

/** The driver for postgres.js. */
export function postgresJs(client: object): Driver<Wire> | undefined {
  const sql = client as Partial<Sql>
  if (typeof sql.unsafe !== 'function' || typeof sql.options !== 'object') return undefined
  const addresses = addressesOf((client as Sql).options)
  return { open: async signal => open(client as Sql, addresses, signal) }
}

async function open(client: Sql, addresses: Address[], signal: AbortSignal): Promise<Wire> {
  const factory = load('postgres') as ((options: object) => Sql) | undefined
  // If the factory cannot be found, as in a bundle, the caller's client is used. Each query may then use another of its
  // connections, so there is no process id.
  if (!factory) return { ...wire(client, { isOpen: () => true, onEnd: () => {}, close: () => {} }), pid: undefined }
  let isOpen = true
  let socket: Socket | undefined
  const ends: (() => void)[] = []
  const notified = new Map<string, (message: string) => void>()
  const { options } = client
  const over = new AbortController()
  // The parsed options of another instance are used unchanged, as postgres.js does for its own listeners.
  const own = factory({
    ...options,
    // With several hosts, it would silently try the next one while a request waits for the first.
    host: options.host.slice(0, 1),
    port: options.port.slice(0, 1),
    shared: { retries: 0, typeArrayMap: {} },
    max: 1,
    idle_timeout: null,
    max_lifetime: null,
    connect_timeout: LONGEST_REQUEST / 1_000,
    fetch_types: false,
    transform: { column: {}, value: {}, row: {} },
    debug: false,
    onparameter: undefined,
    onnotice: () => {}, // it would print notices
    ssl: endedBy(over.signal, options.ssl),
    async socket(parsed: object) {
      // It would silently connect again for its next query, without what the store set on the first connection.
      if (!isOpen) throw new Error('the connection has ended')
      if (options.socket) return options.socket(parsed)
      socket = await connectTo(addresses, signal)
      return socket
    },
    onnotify: (channel: string, message: string) => notified.get(channel)?.(message),
    onclose() {
      close()
      for (const end of ends) end()
    },
  })
  // postgres.js has a TLS socket over this one. The TLS socket is destroyed first: a write to a destroyed socket fails, and
  // without a listener that error would end the process.
  const close = (): void => {
    isOpen = false
    const destroy = (): void => {
      over.abort()
      socket?.destroy()
    }
    own.end({ timeout: 0 }).then(destroy, destroy)
  }
  signal.addEventListener('abort', close)
  try {
    const opened = wire(own, { isOpen: () => isOpen, onEnd: ended => void ends.push(ended), close })
    await opened.firstRow('select 1')
    return {
      ...opened,
      async listen(channel, listener) {
        notified.set(channel, listener)
        await own.unsafe(`listen "${channel}"`)
      },
    }
  } catch (error) {
    close()
    const [address] = addresses
    // It also begins TLS with a server that has refused it.
    const isTls = options.ssl && address && 'host' in address && /before secure TLS/.test(String(error))
    if (isTls && (await isPlain(address, TLS_REQUEST, signal)))
      throw new Error('the server does not support SSL connections')
    throw error
  } finally {
    signal.removeEventListener('abort', close)
  }
}

/** The same TLS options, with a signal that destroys the socket. For `prefer` postgres.js accepts only that word. */
function endedBy(signal: AbortSignal, ssl: Options['ssl']): Options['ssl'] {
  if (!ssl || ssl === 'prefer') return ssl
  const isLax = ssl === 'require' || ssl === 'allow'
  return { ...(typeof ssl === 'object' && ssl), ...(isLax && { rejectUnauthorized: false }), signal }
}

function wire(sql: Sql, rest: Pick<Wire, 'isOpen' | 'onEnd' | 'close'>): Wire {
  let pid: number | undefined
  return {
    ...rest,
    get pid() {
      return pid
    },
    async firstRow(text) {
      // The caller's types and the transform of a value do not change bytes.
      const results = await sql.unsafe(text).raw()
      const result = ('state' in results ? results : results.at(-1)) as Result | undefined
      pid = result?.state?.pid ?? undefined
      return result?.[0] && decoded(result[0])
    },
    async listen(channel, notified) {
      await sql.listen(channel, notified)
    },
  }
}

/** A row of `raw()`: each value as the text that the server sent. */
export function decoded(row: readonly (Uint8Array | null)[]): (string | null)[] {
  return row.map(value => value && Buffer.from(value).toString())
}

type Address = { readonly path: string } | { readonly host: string; readonly port: number }

function addressesOf({ host, port, path }: Options): Address[] {
  return path ? [{ path }] : host.map((name, i) => ({ host: name, port: port[i] ?? 5432 }))
}

/**
 * Connects a socket that does not keep the process alive, because postgres.js does not expose its sockets. Each attempt
 * begins with another host, because one that answers may be a standby. `signal` ends only the attempt.
 */
async function connectTo(addresses: Address[], signal: AbortSignal): Promise<Socket> {
  let failure: unknown
  for (const address of [...addresses]) {
    signal.throwIfAborted()
    addresses.push(...addresses.splice(0, 1))
    const socket = connect({ ...address, lookup })
    const giveUp = (): void => void socket.destroy(new Error('not connected in time'))
    signal.addEventListener('abort', giveUp)
    try {
      // postgres.js sends this as the host name in the TLS handshake (SNI). Providers with many databases at one address
      // need that. For an IP address it passes no name, and Node then compares the certificate with `_host`, or otherwise
      // with "localhost".
      return Object.assign(await connected(socket), 'host' in address && { host: address.host, _host: address.host })
    } catch (error) {
      failure = error
    } finally {
      signal.removeEventListener('abort', giveUp)
    }
  }
  throw failure
}

function connected(socket: Socket): Promise<Socket> {
  return new Promise((resolve, reject) => {
    socket.once('error', reject)
    socket.once('connect', () => {
      socket.off('error', reject)
      socket.unref()
      resolve(socket)
    })
  })
}

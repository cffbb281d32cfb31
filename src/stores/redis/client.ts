import { invalid } from '../../contract/check.ts'
import { type Connection, type Driver, openConnection } from '../wire/connection.ts'
import type { Endpoint } from '../wire/plain.ts'
import { unlessPlain } from './plain.ts'

/** What this store needs of ioredis >= 5, iovalkey, and their `Cluster`. */
export interface CallClient {
  call(command: string, ...args: string[]): Promise<unknown>
  duplicate(...args: never[]): unknown
}

/** What this store needs of node-redis >= 4.7: its client, cluster, sentinel and pool. */
export interface SendCommandClient {
  sendCommand(...args: never[]): Promise<unknown>
}

/** What this store needs of valkey-glide >= 2. */
export interface CustomCommandClient {
  customCommand(args: string[]): Promise<unknown>
}

/** A client of the caller's: it is never configured, and never closed. */
export type RedisClient = CallClient | SendCommandClient | CustomCommandClient

/** Opens connections like those of the caller's client. */
export interface RedisDriver extends Driver<Wire> {
  readonly isCluster: boolean
  /** Of a single server, where the client shows it: `host:port`. */
  readonly address?: string | undefined
  /** Does the client connect to a single server without TLS? @default false */
  readonly isPlain?: boolean
  /** The address, if the client connects to a single server with TLS. */
  readonly secure?: Endpoint | undefined
  /** What the caller's client puts before every key; our own connections do not, so we do. */
  readonly keyPrefix: string
  /** Can a connection of its own subscribe to messages? */
  readonly canListen: boolean
  /** Does a connection live on when the server behind it is another, or has been restarted? @default false */
  readonly reconnects?: boolean
}

/** A connection as a client library makes it; of a cluster, one to each node that is needed. */
export interface Wire extends Connection {
  /** Sends one command, in a cluster to the node of `key`. Rejects if the connection ends before the reply. */
  call(args: readonly string[], key?: string): Promise<unknown>
  /** Senders of a command, one for each server that has keys. */
  masters(): Promise<((args: readonly string[]) => Promise<unknown>)[]>
  /** Resolves when the subscription is active. */
  subscribe(channel: string, notified: (message: string) => void): Promise<void>
  /** What the client said is wrong with this one connection, if it said so; it must then not be used. */
  failure(): unknown
}

/** Opens a connection and does `first` on it. Rejects if the client finds anything wrong with it. */
export function openWire(
  driver: RedisDriver,
  first: (wire: Wire) => Promise<void>,
  closing: AbortSignal,
): Promise<Wire> {
  const begin = async (wire: Wire): Promise<void> => {
    await first(wire).catch(error => {
      throw wire.failure() ?? error
    })
    // ioredis goes on in database 0 when it may not select another.
    if (wire.failure() !== undefined) throw wire.failure()
  }
  const open = (signal: AbortSignal): Promise<Wire> => openConnection(driver, begin, signal)
  return driver.secure ? unlessPlain(driver.secure, open, closing) : open(closing)
}

/**
 * Connects a client of our own, until `signal` aborts. Returns what tells what the client reports since. Rejects with
 * that, which says more than the rejection of `connect`.
 */
export async function connected(
  own: { connect(): Promise<unknown>; on(event: 'error', listener: (error: unknown) => void): unknown },
  signal: AbortSignal,
  close: () => void,
): Promise<() => unknown> {
  let failure: unknown
  signal.addEventListener('abort', close)
  own.on('error', error => {
    failure = error
  })
  try {
    await own.connect()
  } catch (error) {
    close()
    throw failure ?? error
  } finally {
    signal.removeEventListener('abort', close)
  }
  return () => failure
}

/** A client of the caller's that has no duplicate, and so is used as it is. */
export function asItIs(
  isCluster: boolean,
  call: Wire['call'],
  masters: Wire['masters'] = async () => [call],
): RedisDriver {
  const wire: Wire = {
    isOpen: () => true,
    failure: () => undefined,
    call,
    masters,
    subscribe: () => Promise.reject(new Error('this client cannot subscribe')),
    onEnd: () => {},
    close: () => {},
  }
  return { isCluster, keyPrefix: '', canListen: false, reconnects: true, open: async () => wire }
}

/** The key prefix of a client. Throws `INVALID_ARGUMENT` if it is no text in UTF-8: our keys would be others than its own. */
export function prefixOf(given: unknown): string {
  if (given === undefined || given === null) return ''
  if (typeof given === 'string') return given
  const prefix = given instanceof Uint8Array ? Buffer.from(given).toString() : undefined
  if (prefix !== undefined && Buffer.from(prefix).equals(given as Uint8Array)) return prefix
  throw invalid('the key prefix of this client is not text in UTF-8: give it a string')
}

/** What a driver of one server says of where that is. */
export function placeOf(
  { host = 'localhost', port = 6379, path, tls }: { host?: string; port?: number; path?: string; tls?: unknown },
  isDirect = true,
): Pick<RedisDriver, 'isPlain' | 'secure'> & { address: string } {
  return {
    address: path ?? addressOf(host, port),
    isPlain: !tls,
    secure: tls && !path && isDirect ? { host, port } : undefined,
  }
}

/** Has `value` a function of this name? Clients are known by what they can do. */
export function can<Name extends string>(
  value: object,
  name: Name,
): value is { [key in Name]: (...args: never[]) => unknown } {
  return typeof (value as Record<string, unknown>)[name] === 'function'
}

/** As people write it: an IPv6 address has brackets. */
function addressOf(host = 'localhost', port = 6379): string {
  return `${host.includes(':') ? `[${host}]` : host}:${port}`
}

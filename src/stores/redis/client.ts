import { invalid } from '../../contract/check.ts'
import { type Connection, type Driver, openConnection } from '../wire/connection.ts'
import type { Endpoint } from '../wire/plain.ts'
import { unlessPlain } from './plain.ts'

/** The part of ioredis >= 5, iovalkey, and their `Cluster`, that this store uses. */
export interface CallClient {
  call(command: string, ...args: string[]): Promise<unknown>
  duplicate(...args: never[]): unknown
}

/** The part of node-redis >= 4.7 that this store uses: its client, cluster, sentinel and pool. */
export interface SendCommandClient {
  sendCommand(...args: never[]): Promise<unknown>
}

/** The part of valkey-glide >= 2 that this store uses. */
export interface CustomCommandClient {
  customCommand(args: string[]): Promise<unknown>
}

/** A client of the caller. It is never configured and never closed. */
export type RedisClient = CallClient | SendCommandClient | CustomCommandClient

/** Opens connections like those of the caller's client. */
export interface RedisDriver extends Driver<Wire> {
  readonly isCluster: boolean
  /** The address of a single server as `host:port`, if the client exposes it. */
  readonly address?: string | undefined
  /** Does the client connect to a single server without TLS? @default false */
  readonly isPlain?: boolean
  /** The address, if the client connects to a single server with TLS. */
  readonly secure?: Endpoint | undefined
  /** The prefix that the caller's client puts before every key. Our own connections do not add it, so the store does. */
  readonly keyPrefix: string
  /** Can its own connection subscribe to messages? */
  readonly canListen: boolean
  /** Does a connection stay open when another server takes over, or the server restarts? @default false */
  readonly reconnects?: boolean
}

/** A connection of a client library. In a cluster it includes one to each node that is needed. */
export interface Wire extends Connection {
  /**
   * Must requests that go to another node, because their hash slot moves, be sent one at a time? node-redis 4 awaits the answer
   * to ASKING, which applies only to the next command of the connection. @default false
   */
  readonly redirectsOne?: boolean
  /** Sends one command, in a cluster to the node of `key`. Rejects if the connection ends before the reply. */
  call(args: readonly string[], key?: string): Promise<unknown>
  /** Returns functions that send a command, one for each server that has keys. */
  masters(): Promise<((args: readonly string[]) => Promise<unknown>)[]>
  /** Resolves when the subscription is active. */
  subscribe(channel: string, notified: (message: string) => void): Promise<void>
  /**
   * Returns the error that the client reported about this connection, if it reported one. The connection must then not be
   * used.
   */
  failure(): unknown
}

/** Opens a connection and runs `first` on it. Rejects if the client reports any error of the connection. */
export function openWire(
  driver: RedisDriver,
  first: (wire: Wire) => Promise<void>,
  closing: AbortSignal,
): Promise<Wire> {
  const begin = async (wire: Wire): Promise<void> => {
    await first(wire).catch(error => {
      throw wire.failure() ?? error
    })
    // ioredis continues in database 0 if it may not select another one.
    if (wire.failure() !== undefined) throw wire.failure()
  }
  const open = (signal: AbortSignal): Promise<Wire> => openConnection(driver, begin, signal)
  return driver.secure ? unlessPlain(driver.secure, open, closing) : open(closing)
}

/**
 * Connects a client of our own, unless `signal` aborts. Resolves to a function that returns the last error that the client
 * has reported. Rejects with that error, because it says more than the rejection of `connect`.
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

/** Makes a driver for a client of the caller that cannot be duplicated, and so is used directly. */
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

/**
 * The key prefix of a client. Throws `INVALID_ARGUMENT` if it is not text in UTF-8, because our keys would differ from
 * those of the client.
 */
export function prefixOf(given: unknown): string {
  if (given === undefined || given === null) return ''
  if (typeof given === 'string') return given
  const prefix = given instanceof Uint8Array ? Buffer.from(given).toString() : undefined
  if (prefix !== undefined && Buffer.from(prefix).equals(given as Uint8Array)) return prefix
  throw invalid('the key prefix of this client is not text in UTF-8: give it a string')
}

/** The address of a single server, and whether the client connects to it with TLS. */
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

/** Has `value` a function of this name? Clients are recognised by their functions. */
export function can<Name extends string>(
  value: object,
  name: Name,
): value is { [key in Name]: (...args: never[]) => unknown } {
  return typeof (value as Record<string, unknown>)[name] === 'function'
}

/** The address as people write it: an IPv6 address has brackets. */
function addressOf(host = 'localhost', port = 6379): string {
  return `${host.includes(':') ? `[${host}]` : host}:${port}`
}

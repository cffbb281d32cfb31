import { type AnyLink, type Opener, openLink as openAnyLink } from '../shared/link.ts'
import { type Endpoint, unlessPlain } from './plain.ts'

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

/** Connections of one kind of client. */
export interface Driver extends Opener<Link> {
  readonly isCluster: boolean
  /** Of a single server, where the client tells it: `host:port`. */
  readonly address?: string | undefined
  /** Does the client connect to a single server without TLS? @default false */
  readonly isPlain?: boolean
  /** The address, if the client connects to a single server with TLS. */
  readonly secure?: Endpoint | undefined
  /** What the caller's client puts before every key; our own connections do not, so we do. */
  readonly keyPrefix: string
  /** Can a connection of its own be had for messages? */
  readonly canListen: boolean
  /** Does a connection live on when the server behind it is another, or has been restarted? @default false */
  readonly reconnects?: boolean
  /** Opens a connection of our own where the client can be duplicated. */
  open(signal: AbortSignal): Promise<Link>
}

/** A connection; of a cluster, one to each node that is needed. */
export interface Link extends AnyLink {
  /** Sends one command, in a cluster to the node of `key`. Rejects if the connection ends before the reply. */
  call(args: readonly string[], key?: string): Promise<unknown>
  /** Senders of a command, one for each server that has keys. */
  masters(): Promise<((args: readonly string[]) => Promise<unknown>)[]>
  /** Resolves when messages are heard. */
  subscribe(channel: string, heard: (message: string) => void): Promise<void>
  /** What the client said is wrong with this one connection, if it said so; it must then not be used. */
  failure(): unknown
}

/** A connection on which `first` was done, and with which the client finds nothing wrong. */
export function openLink(driver: Driver, first: (link: Link) => Promise<void>, closing: AbortSignal): Promise<Link> {
  const begin = async (link: Link): Promise<void> => {
    await first(link).catch(error => {
      throw link.failure() ?? error
    })
    // ioredis goes on in database 0 when it may not select another.
    if (link.failure() !== undefined) throw link.failure()
  }
  const open = (signal: AbortSignal): Promise<Link> => openAnyLink(driver, begin, signal)
  return driver.secure ? unlessPlain(driver.secure, open, closing) : open(closing)
}

/** Has `value` a function of this name? Clients are known by what they can do. */
export function can<Name extends string>(
  value: object,
  name: Name,
): value is { [key in Name]: (...args: never[]) => unknown } {
  return typeof (value as Record<string, unknown>)[name] === 'function'
}

/** As people write it: an IPv6 address has brackets. */
export function addressOf(host = 'localhost', port = 6379): string {
  return `${host.includes(':') ? `[${host}]` : host}:${port}`
}

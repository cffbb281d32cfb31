import { LONGEST_REQUEST } from '../../contract/time.ts'
import { lookup } from '../wire/lookup.ts'
import { asItIs, can, connected, placeOf, prefixOf, type RedisDriver, type Wire } from './client.ts'
import { readPrivate, sentinelOptionsOf } from './private-options.ts'
import { Turns } from './turns.ts'

type Send = (...args: unknown[]) => Promise<unknown>

interface Options {
  readonly socket?: {
    readonly host?: string
    readonly port?: number
    readonly path?: string
    readonly tls?: unknown
    readonly connectTimeout?: number
  }
  readonly keyPrefix?: unknown
  /** The options of each node of a cluster. */
  readonly defaults?: Options
}

interface Connection {
  readonly isOpen?: boolean
  readonly isReady?: boolean
  readonly masters?: readonly unknown[]
  readonly sendCommand: Send
  connect(): Promise<unknown>
  destroy?(): unknown
  disconnect(): Promise<unknown>
  on(event: string, listener: (error: unknown) => void): unknown
  subscribe(channel: string, notified: (message: string) => void): Promise<unknown>
  nodeClient(node: unknown): { readonly sendCommand: Send } | Promise<{ readonly sendCommand: Send }>
  unref?(): void
}

interface Client extends Connection {
  duplicate(options: object): Connection
}

/** The driver for node-redis from version 4.7 on: its client, cluster, sentinel and pool. */
export function nodeRedis(client: object): RedisDriver | undefined {
  if (!can(client, 'sendCommand')) return undefined
  const known = client as unknown as Client
  if (!can(client, 'duplicate')) return can(client, 'execute') ? pool(known) : undefined
  if (can(client, 'getMasterNode')) return sentinel(known)
  return can(client, 'nodeClient') ? cluster(known) : single(known)
}

/** The caller's options, with ours in place of those that are unsafe. `signal` ends the attempt to connect. */
function safe(options: Options = {}, signal: AbortSignal): object {
  const { connectTimeout = LONGEST_REQUEST } = options.socket ?? {}
  return {
    ...options,
    disableOfflineQueue: true,
    legacyMode: false,
    readonly: false,
    pingInterval: undefined,
    commandsQueueMaxLength: undefined,
    keyPrefix: undefined,
    commandOptions: {},
    clientSideCache: undefined,
    emitInvalidate: false,
    socket: {
      lookup,
      ...options.socket,
      connectTimeout: Math.min(connectTimeout, LONGEST_REQUEST),
      socketTimeout: undefined,
      // Without reconnecting, requests fail with their connection. The next request opens another connection.
      reconnectStrategy: false,
      // This is passed to net.connect(). The client's own close() misses a socket that is still connecting, and the client
      // then uses it.
      signal,
    },
  }
}

function single(client: Client): RedisDriver {
  // In version 4 a client has no options if none were passed.
  const options = readPrivate(client, 'options', 'redis 4.7 to 6.3') as Options | undefined
  return {
    isCluster: false,
    ...placeOf(options?.socket ?? {}),
    keyPrefix: prefixOf(options?.keyPrefix),
    canListen: true,
    async open(signal) {
      const own = client.duplicate(safe(options, signal))
      own.unref?.()
      return open(own, signal, args => own.sendCommand(args))
    },
  }
}

function cluster(client: Client): RedisDriver {
  // Version 4 does not expose the options of a cluster, and has no key prefix. Its duplicate keeps the other options. The
  // default options of its nodes are safe, because every request has a deadline.
  const options = can(client, 'withTypeMapping')
    ? (readPrivate(client, '_options', 'redis 5.0 to 6.3') as Options)
    : undefined
  const overrides = { minimizeConnections: true, useReplicas: false, keyPrefix: undefined, commandOptions: {} }
  return {
    isCluster: true,
    keyPrefix: prefixOf(options?.keyPrefix),
    canListen: true,
    async open(signal) {
      const own = client.duplicate({ ...overrides, ...(options && { defaults: safe(options.defaults, signal) }) })
      const wire = await open(own, signal, (args, key) => own.sendCommand(key, false, args))
      return {
        ...wire,
        redirectsOne: options === undefined,
        isOpen: () => true,
        failure: () => undefined,
        async masters() {
          const nodes = await Promise.all((own.masters ?? []).map(async node => own.nodeClient(node)))
          return nodes.map(node => (args: readonly string[]) => node.sendCommand(args))
        },
      }
    },
  }
}

function sentinel(client: Client): RedisDriver {
  const { sentinelRootNodes, nodeClientOptions, sentinelClientOptions } = sentinelOptionsOf(client)
  const turns = new Turns(sentinelRootNodes)
  return {
    isCluster: false,
    keyPrefix: prefixOf(readPrivate(client, '_keyPrefix', 'redis 6.1 to 6.3')),
    canListen: true,
    reconnects: true,
    open: signal =>
      // Each attempt asks one sentinel. Otherwise each would ask them in the same order, and wait for the first to answer.
      turns.take(async node => {
        const ended = new AbortController()
        const sockets = AbortSignal.any([signal, ended.signal])
        const own = client.duplicate({
          commandOptions: {},
          // Otherwise the client would send a request again whose answer was lost with the connection.
          maxCommandRediscovers: 0,
          sentinelRootNodes: [node],
          nodeClientOptions: endedBy(sockets, nodeClientOptions),
          sentinelClientOptions: endedBy(sockets, sentinelClientOptions),
        })
        const wire = await open(own, signal, args => own.sendCommand(false, args))
        const close = (): void => {
          wire.close()
          ended.abort() // its own close() waits for a sentinel that does not answer
        }
        return { ...wire, isOpen: () => true, failure: () => undefined, close }
      }, signal),
  }
}

function pool(client: Client): RedisDriver {
  return {
    ...asItIs(false, args => client.sendCommand(args)),
    keyPrefix: prefixOf(readPrivate(client, '_keyPrefix', 'redis 6.1 to 6.3')),
  }
}

/** The options of a node, with a signal that destroys its sockets. */
function endedBy(signal: AbortSignal, options: Options = {}): object {
  return { ...options, socket: { lookup, ...options.socket, signal } }
}

async function open(own: Connection, signal: AbortSignal, call: Wire['call']): Promise<Wire> {
  const failure = await connected(own, signal, () => close(own))
  return {
    isOpen: () => own.isReady === true,
    failure,
    call,
    masters: async () => [call],
    async subscribe(channel, notified) {
      await own.subscribe(channel, notified)
    },
    onEnd(ended) {
      for (const event of ['error', 'end', 'node-error', 'node-disconnect']) own.on(event, ended)
    },
    close: () => close(own),
  }
}

function close(own: Connection): void {
  try {
    const closed = own.destroy ? own.destroy() : own.disconnect()
    Promise.resolve(closed).catch(() => {}) // it was closed already
  } catch {
    // It was already closed.
  }
}

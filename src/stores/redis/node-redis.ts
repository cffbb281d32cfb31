import { LONGEST_REQUEST } from '../../contract/time.ts'
import { addressOf, can, type Driver, type Link } from './client.ts'

type Send = (...args: unknown[]) => Promise<unknown>

interface Options {
  readonly socket?: {
    readonly host?: string
    readonly port?: number
    readonly path?: string
    readonly tls?: unknown
    readonly connectTimeout?: number
  }
  readonly keyPrefix?: string
  /** Of a cluster: what each of its nodes is opened with. */
  readonly defaults?: Options
}

interface Connection {
  readonly isOpen?: boolean
  readonly isReady?: boolean
  readonly masters?: readonly unknown[]
  readonly options?: Options
  readonly _options?: Options
  readonly sendCommand: Send
  connect(): Promise<unknown>
  destroy?(): unknown
  disconnect(): Promise<unknown>
  on(event: string, listener: (error: unknown) => void): unknown
  subscribe(channel: string, heard: (message: string) => void): Promise<unknown>
  nodeClient(node: unknown): { readonly sendCommand: Send } | Promise<{ readonly sendCommand: Send }>
  unref?(): void
}

interface Client extends Connection {
  duplicate(options: object): Connection
}

/** node-redis from 4.7 on: its client, cluster, sentinel and pool. */
export function nodeRedis(client: object): Driver | undefined {
  if (!can(client, 'sendCommand')) return undefined
  const known = client as unknown as Client
  if (!can(client, 'duplicate')) return can(client, 'execute') ? pool(known) : undefined
  if (can(client, 'getMasterNode')) return sentinel(known)
  return can(client, 'nodeClient') ? cluster(known) : single(known)
}

/** What a connection is opened with over the options that the caller gave. */
function safe(options: Options = {}): object {
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
      ...options.socket,
      connectTimeout: Math.min(connectTimeout, LONGEST_REQUEST),
      socketTimeout: undefined,
      // Its requests then fail with it; the next one opens another.
      reconnectStrategy: false,
    },
  }
}

function single(client: Client): Driver {
  const { host = 'localhost', port = 6379, path, tls } = client.options?.socket ?? {}
  return {
    isCluster: false,
    address: path ?? addressOf(host, port),
    isPlain: !tls,
    secure: tls && !path ? { host, port } : undefined,
    keyPrefix: client.options?.keyPrefix ?? '',
    canListen: true,
    async open(signal) {
      const own = client.duplicate(safe(client.options))
      own.unref?.()
      return open(own, signal, args => own.sendCommand(args))
    },
  }
}

function cluster(client: Client): Driver {
  // Version 4 shows no options of a cluster. What its nodes do by default is safe, for every request has a deadline.
  const options = client._options ?? client.options
  const overrides = { minimizeConnections: true, useReplicas: false, keyPrefix: undefined, commandOptions: {} }
  return {
    isCluster: true,
    keyPrefix: options?.keyPrefix ?? '',
    canListen: true,
    async open(signal) {
      const own = client.duplicate({ ...overrides, ...(options && { defaults: safe(options.defaults) }) })
      const link = await open(own, signal, (args, key) => own.sendCommand(key, false, args))
      return {
        ...link,
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

function sentinel(client: Client): Driver {
  return {
    isCluster: false,
    keyPrefix: client._options?.keyPrefix ?? '',
    canListen: true,
    reconnects: true,
    async open(signal) {
      const own = client.duplicate({ commandOptions: {} })
      const link = await open(own, signal, args => own.sendCommand(false, args))
      return { ...link, isOpen: () => true, failure: () => undefined }
    },
  }
}

/** A pool has no duplicate, so it is used as it is. */
function pool(client: Client): Driver {
  const call: Link['call'] = args => client.sendCommand(args)
  const link: Link = {
    isOpen: () => true,
    failure: () => undefined,
    call,
    masters: async () => [call],
    subscribe: () => Promise.reject(new Error('a pool hears no messages')),
    onEnd: () => {},
    close: () => {},
  }
  return { isCluster: false, keyPrefix: '', canListen: false, reconnects: true, open: async () => link }
}

async function open(own: Connection, signal: AbortSignal, call: Link['call']): Promise<Link> {
  let failure: unknown
  const giveUp = (): void => close(own)
  signal.addEventListener('abort', giveUp)
  own.on('error', error => {
    failure = error
  })
  try {
    await own.connect()
  } catch (error) {
    close(own)
    throw failure ?? error
  } finally {
    signal.removeEventListener('abort', giveUp)
  }
  return {
    isOpen: () => own.isReady === true,
    failure: () => failure,
    call,
    masters: async () => [call],
    async subscribe(channel, heard) {
      await own.subscribe(channel, heard)
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
    // it was closed already
  }
}

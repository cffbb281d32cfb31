import { LONGEST_REQUEST } from '../../contract/time.ts'
import { warn } from '../../contract/warnings.ts'
import { addressOf, can, type Driver, type Link } from './client.ts'

interface Emitter {
  on(event: string, listener: (...args: never[]) => void): unknown
}

interface Connection extends Emitter {
  readonly status: string
  readonly stream?: { unref?: () => void }
  call(...args: string[]): Promise<unknown>
  connect(): Promise<void>
  disconnect(): void
  subscribe(channel: string): Promise<unknown>
}

interface Single extends Connection {
  readonly options: {
    readonly host?: string
    readonly port?: number
    readonly path?: string
    readonly db?: number
    readonly tls?: object
    readonly sentinels?: unknown
    readonly keyPrefix?: string
    readonly connectTimeout?: number
  }
  /** Once it has connected. */
  readonly condition?: { readonly select?: number } | null
  duplicate(options: object): Single
}

interface Cluster extends Connection {
  readonly options: { readonly keyPrefix?: string; readonly redisOptions?: { readonly keyPrefix?: string } }
  readonly subscriber?: { getInstance?(): { readonly stream?: { unref?: () => void } } | null }
  duplicate(nodes: [], options: object): Cluster
  nodes(role: 'master'): Connection[]
}

// Set over whatever the caller's client has, so that a request is sent once or not at all, and fails when its
// connection does: with the defaults it is kept for a server that is down and sent again after a reconnect.
const SAFE = {
  lazyConnect: true,
  keyPrefix: '',
  retryStrategy: () => null,
  sentinelRetryStrategy: () => null,
  reconnectOnError: null,
  maxRetriesPerRequest: 0,
  autoResendUnfulfilledCommands: false,
  autoResubscribe: false,
  enableOfflineQueue: false,
  enableAutoPipelining: false,
  // It asks INFO, which a user with the least permissions may not; our own first command serves as well.
  enableReadyCheck: false,
  commandTimeout: undefined,
  socketTimeout: undefined,
  stringNumbers: false,
  readOnly: false,
  monitor: false,
}

/** ioredis and iovalkey, their `Cluster`, and Sentinel through them. */
export function ioredis(client: object): Driver | undefined {
  if (!can(client, 'call') || !can(client, 'duplicate')) return undefined
  return (client as { isCluster?: boolean }).isCluster === true
    ? cluster(client as unknown as Cluster)
    : single(client as unknown as Single)
}

function single(client: Single): Driver {
  const {
    host = 'localhost',
    port = 6379,
    path,
    tls,
    sentinels,
    keyPrefix = '',
    connectTimeout = LONGEST_REQUEST,
  } = client.options
  const address = path ?? addressOf(host, port)
  const selected = (): number => client.condition?.select ?? client.options.db ?? 0
  const db = selected()
  return {
    isCluster: false,
    address,
    isPlain: !tls,
    secure: tls && !path && !sentinels ? { host, port } : undefined,
    keyPrefix: String(keyPrefix),
    canListen: true,
    open: async signal => {
      const own = client.duplicate({ ...SAFE, db, connectTimeout: Math.min(connectTimeout, LONGEST_REQUEST) })
      unrefWhenConnected(own)
      const link = await open({ own, signal, ends: ['close'], masters: () => [own] })
      const call: Link['call'] = args => {
        if (selected() !== db) warnOfDatabase(address, db, selected())
        return link.call(args)
      }
      return { ...link, call }
    },
  }
}

/** Leases stay in their database: if they moved with the client, two could hold the same name. */
function warnOfDatabase(address: string, db: number, selected: number): void {
  warn(
    'HOLDFAST_DATABASE',
    `The client of ${address} selected database ${selected} after Holdfast was given it. Its leases stay in database ` +
      `${db}: a process whose client is in database ${selected} may hold the same names. Give the client ` +
      `{ db: ${selected} }, or select before redis(client).`,
    `${address} ${db} ${selected}`,
  )
}

function cluster(client: Cluster): Driver {
  const { keyPrefix, redisOptions } = client.options
  return {
    isCluster: true,
    keyPrefix: String(keyPrefix || redisOptions?.keyPrefix || ''),
    canListen: true,
    open: async signal => {
      // A node connects at its first request, which waits for that; every request of ours has a deadline.
      const node = { ...SAFE, enableOfflineQueue: true }
      const own = client.duplicate([], {
        ...node,
        clusterRetryStrategy: () => null,
        // Else a request that was cut off is sent again.
        retryDelayOnFailover: 0,
        retryDelayOnClusterDown: 0,
        scaleReads: 'master',
        redisOptions: { ...node, connectTimeout: LONGEST_REQUEST, socketTimeout: LONGEST_REQUEST },
      })
      own.on('+node', (node: Connection) => unrefWhenConnected(node))
      const ends = ['end', 'node error', '-node']
      const link = await open({ own, signal, ends, masters: () => own.nodes('master') })
      return {
        ...link,
        failure: () => undefined,
        async subscribe(channel, heard) {
          await link.subscribe(channel, heard)
          own.subscriber?.getInstance?.()?.stream?.unref?.()
        },
      }
    },
  }
}

interface Opening {
  readonly own: Connection
  readonly signal: AbortSignal
  /** Events that say that it, or any part of it, has ended. */
  readonly ends: readonly string[]
  masters(): Connection[]
}

async function open({ own, signal, ends, masters }: Opening): Promise<Link> {
  let failure: unknown
  const giveUp = (): void => own.disconnect()
  signal.addEventListener('abort', giveUp)
  own.on('error', (error: unknown) => {
    failure = error
  })
  try {
    await own.connect()
  } catch (error) {
    own.disconnect()
    throw failure ?? error
  } finally {
    signal.removeEventListener('abort', giveUp)
  }
  return {
    isOpen: () => own.status === 'ready',
    failure: () => failure,
    call: args => own.call(...args),
    async masters() {
      return masters().map(node => (args: readonly string[]) => node.call(...args))
    },
    async subscribe(channel, heard) {
      own.on('message', (_: string, message: string) => heard(message))
      await own.subscribe(channel)
    },
    onEnd(ended) {
      for (const event of ends) own.on(event, ended)
    },
    close: () => own.disconnect(),
  }
}

/** The core holds the process while somebody waits for an answer; an idle connection never does. */
function unrefWhenConnected(own: Connection): void {
  own.on('connect', () => own.stream?.unref?.())
}

import dns from 'node:dns'
import { LONGEST_REQUEST } from '../../contract/time.ts'
import { warn } from '../../contract/warnings.ts'
import { lookedUp, lookup } from '../wire/lookup.ts'
import { can, connected, placeOf, prefixOf, type RedisDriver, type Wire } from './client.ts'
import { Connector } from './connector.ts'
import { readPrivate } from './private-options.ts'
import { Turns } from './turns.ts'

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

interface Place {
  readonly host: string
  readonly port: number
}

type NatMap = ((key: string) => Place | null) | Readonly<Record<string, Place>>

interface Single extends Connection {
  readonly options: {
    readonly host?: string
    readonly port?: number
    readonly path?: string
    readonly db?: number
    readonly tls?: object
    readonly sentinels?: readonly { readonly host?: string }[] | null
    readonly natMap?: NatMap | null
    readonly Connector?: unknown
    readonly sentinelCommandTimeout?: number
    readonly keyPrefix?: string
    readonly connectTimeout?: number
  }
  /** Once it has connected. */
  readonly condition?: { readonly select?: number } | null
  duplicate(options: object): Single
  sendCommand(command: Command, stream?: unknown): unknown
}

/** What ioredis makes of a call. */
interface Command {
  readonly name: string
  args: readonly unknown[]
}

interface Cluster extends Connection {
  readonly options: {
    readonly keyPrefix?: string
    readonly redisOptions?: { readonly keyPrefix?: string; readonly connectTimeout?: number }
    readonly dnsLookup?: unknown
  }
  readonly subscriber?: { getInstance?(): { readonly stream?: { unref?: () => void } } | null }
  duplicate(nodes: [], options: object): Cluster
  nodes(role: 'master'): Connection[]
}

// These override the options of the caller's client. A request is then sent at most once, and fails when its connection
// does. With the defaults it would be kept while the server is down, and resent after a reconnect.
const SAFE = {
  lazyConnect: true,
  keyPrefix: '',
  // Without reconnecting, nothing is sent again or subscribed again.
  retryStrategy: () => null,
  sentinelRetryStrategy: () => null,
  reconnectOnError: null,
  enableOfflineQueue: false,
  enableAutoPipelining: false,
  // It asks INFO, which a user with the least permissions may not; our own first command serves as well.
  enableReadyCheck: false,
  commandTimeout: undefined,
  socketTimeout: undefined,
  stringNumbers: false,
  readOnly: false,
  monitor: false,
  // Through Sentinel: leases are written.
  role: 'master',
}

/** ioredis and iovalkey, their `Cluster`, and Sentinel through them. */
export function ioredis(client: object): RedisDriver | undefined {
  if (!can(client, 'call') || !can(client, 'duplicate')) return undefined
  return (client as { isCluster?: boolean }).isCluster === true
    ? cluster(client as unknown as Cluster)
    : single(client as unknown as Single)
}

function single(client: Single): RedisDriver {
  const { sentinels, sentinelCommandTimeout, keyPrefix, connectTimeout = LONGEST_REQUEST } = client.options
  const { natMap } = client.options
  const turns = sentinels ? new Turns(sentinels) : undefined
  const place = placeOf(client.options, !sentinels)
  // It has connected, so it has a database, perhaps another than that of its options.
  if (client.status === 'ready') readPrivate(client, 'condition', 'ioredis 5.11 and 6.0, iovalkey 0.4')
  const selected = (): number => client.condition?.select ?? client.options.db ?? 0
  const db = selected()
  return {
    isCluster: false,
    ...place,
    keyPrefix: prefixOf(keyPrefix),
    canListen: true,
    open: async signal => {
      const connect = (options?: object): Promise<Wire> => {
        const limits = { connectTimeout: Math.min(connectTimeout, LONGEST_REQUEST) }
        const own = client.duplicate({ ...SAFE, db, ...limits, ...options })
        unrefWhenConnected(own)
        forgetArguments(own)
        return open({ own, signal, ends: ['close'], masters: () => [own] })
      }
      // Otherwise each attempt would ask them in the same order, and wait for the answer of the first.
      const askOne = async (sentinel: { host?: string }): Promise<Wire> => {
        await lookedUp(sentinel.host)
        return connect({
          sentinels: [sentinel],
          sentinelCommandTimeout: Math.min(sentinelCommandTimeout ?? LONGEST_REQUEST, LONGEST_REQUEST),
          natMap: withLookup(natMap),
        })
      }
      const single = { Connector: client.options.Connector ?? Connector }
      const wire = await (turns ? turns.take(askOne, signal) : connect(single))
      const call: Wire['call'] = args => {
        if (selected() !== db) warnOfDatabase(place.address, db, selected())
        return wire.call(args)
      }
      return { ...wire, call }
    },
  }
}

/** ioredis connects to what this returns, so it uses our `lookup` for the master too. */
function withLookup(natMap?: NatMap | null): (key: string) => object {
  return key => {
    const end = key.lastIndexOf(':')
    const mapped = typeof natMap === 'function' ? natMap(key) : natMap?.[key]
    return { ...(mapped ?? { host: key.slice(0, end), port: Number(key.slice(end + 1)) }), lookup }
  }
}

/** Leases stay in their database: if they moved with the client, two could hold the same name. */
function warnOfDatabase(address: string, db: number, selected: number): void {
  warn(
    'HOLDFAST_DATABASE',
    `The client of ${address} selected database ${selected} after redis(client). Its leases stay in database ${db}. ` +
      `Another process may hold the same names in ${selected}. Select before redis(client).`,
    `${address} ${db} ${selected}`,
  )
}

function cluster(client: Cluster): RedisDriver {
  const { keyPrefix, redisOptions, dnsLookup } = client.options
  return {
    isCluster: true,
    keyPrefix: prefixOf(keyPrefix || redisOptions?.keyPrefix),
    canListen: true,
    open: async signal => {
      // A node connects at its first request, which waits for that. Every request of ours has a deadline.
      const node = { ...SAFE, enableOfflineQueue: true }
      const own = client.duplicate([], {
        ...node,
        clusterRetryStrategy: () => null,
        // Otherwise an interrupted request is sent again.
        retryDelayOnFailover: 0,
        retryDelayOnClusterDown: 0,
        // Then we ask for one key at a time, which is served.
        retryDelayOnTryAgain: 1,
        scaleReads: 'master',
        dnsLookup: dnsLookup === dns.lookup ? lookUpOne : dnsLookup,
        // Version 5 and iovalkey replace the caller's by these: login and TLS would be lost.
        redisOptions: {
          Connector,
          ...redisOptions,
          ...node,
          connectTimeout: Math.min(redisOptions?.connectTimeout ?? LONGEST_REQUEST, LONGEST_REQUEST),
          socketTimeout: LONGEST_REQUEST,
        },
      })
      own.on('+node', (node: Connection) => unrefWhenConnected(node))
      const ends = ['end', 'node error', '-node']
      const wire = await open({ own, signal, ends, masters: () => own.nodes('master') }).catch(error => {
        throw error?.lastNodeError ?? error // such as a refused password
      })
      return {
        ...wire,
        failure: () => undefined,
        async subscribe(channel, notified) {
          await wire.subscribe(channel, notified)
          own.subscriber?.getInstance?.()?.stream?.unref?.()
        },
      }
    },
  }
}

/** Takes what ioredis passes to `dns.lookup`. */
function lookUpOne(host: string, callback: (error: Error | null, address: string) => void): void {
  lookup(host, {}, (error, address) => callback(error, typeof address === 'string' ? address : ''))
}

interface Opening {
  readonly own: Connection
  readonly signal: AbortSignal
  /** Events that mean that the client, or a part of it, has ended. */
  readonly ends: readonly string[]
  masters(): Connection[]
}

async function open({ own, signal, ends, masters }: Opening): Promise<Wire> {
  const failure = await connected(own, signal, () => own.disconnect())
  let isClosed = false
  return {
    isOpen: () => own.status === 'ready',
    failure,
    call: args => own.call(...args),
    async masters() {
      return masters().map(node => (args: readonly string[]) => node.call(...args))
    },
    async subscribe(channel, notified) {
      own.on('message', (_: string, message: string) => notified(message))
      await own.subscribe(channel)
    },
    onEnd(ended) {
      for (const event of ends) own.on(event, ended)
    },
    close() {
      // A cluster of iovalkey fails if an event of its end closes it again.
      if (!isClosed) {
        isClosed = true
        own.disconnect()
      }
    },
  }
}

/**
 * Drops the arguments of calls of the script once they are written: this connection never sends a command twice. ioredis
 * assigns a new function to a property of each command, and V8 creates such functions in the old generation. So commands
 * survive until a full collection, with their arguments, some KB for a batch. A minor collection then takes 2.2 ms in place
 * of 1, which is the 99th percentile of 64 tasks (4 ms in place of 2.3).
 */
function forgetArguments(own: Single): void {
  const { sendCommand } = own
  own.sendCommand = (command, stream) => {
    const reply = sendCommand.call(own, command, stream)
    if (command.name === 'evalsha') command.args = []
    return reply
  }
}

/** The core keeps the process alive while a request waits for its answer. An idle connection does not. */
function unrefWhenConnected(own: Connection): void {
  own.on('connect', () => own.stream?.unref?.())
}

import { invalid } from '../../contract/check.ts'
import { LeaseError } from '../../contract/errors.ts'
import type { Store } from '../../contract/store.ts'
import { keyOf } from '../cas/key.ts'
import { warnOfClearPassword } from '../url/clear-password.ts'
import { load, WHERE } from '../url/load.ts'
import { minTtlIn } from '../url/min-ttl.ts'
import { checkHosts, decodePart, optionsOf } from '../url/options.ts'
import { pemFiles, readPem } from '../url/pem.ts'
import { bucketOf, type NatsKvm } from './client.ts'
import { failure } from './failure.ts'
import { storeOf } from './index.ts'
import { migrate } from './migrate.ts'

const SHAPE = 'write nats://[user:password@]host[:port][,host[:port]…]/bucket, or natss:// for TLS'

/** Milliseconds until the next server is tried. The client waits for 20 s by default, and begins with the one that is gone. */
const DIAL = 2_000

/** Milliseconds between two pings. After two without an answer the client connects elsewhere. */
const PING = 2_000

interface Connection {
  close(): Promise<void>
}

interface Target {
  readonly hosts: readonly string[]
  readonly isTls: boolean
  readonly bucket: string
  readonly options: URLSearchParams
  connect(): Promise<Connection>
  kvmOf(connection: Connection): NatsKvm
}

/**
 * Opens the store at `nats://[user:password@]host[:port]/bucket`, over `@nats-io/transport-node` and `@nats-io/kv`.
 * @throws LeaseError INVALID_ARGUMENT for an invalid URL, DRIVER_MISSING
 */
export async function openNats(url: string): Promise<Store> {
  const { bucket, options, connect, kvmOf } = targetOf(url)
  let connection: Connection | undefined
  let isClosed = false
  const kvm = async (): Promise<NatsKvm> => {
    connection ??= await connect()
    if (isClosed) await connection.close() // it was closed while it connected
    return kvmOf(connection)
  }
  const close = async (): Promise<void> => {
    isClosed = true
    await connection?.close()
  }
  return storeOf(kvm, { bucket, minTtl: minTtlIn(options) }, close)
}

/** Creates the bucket of a URL, and resolves to its name. Rejects like `migrate`. */
export async function migrateUrl(url: string): Promise<string> {
  const { bucket, options } = targetOf(url)
  const replicas = options.has('replicas') ? Number(options.get('replicas')) : undefined
  if (replicas !== undefined && ![1, 3, 5].includes(replicas)) throw invalid('replicas in a URL is 1, 3 or 5')
  await whileOpen(url, kvm => migrate(kvm, { bucket, replicas }))
  return bucket
}

/** Deletes the records of these names. A mark of each deletion remains. */
export function forgetNames(url: string, names: readonly string[]): Promise<void> {
  return whileOpen(url, async (kvm, bucket) => {
    const kv = await kvm.open(bucket, { allow_direct: false })
    for (const name of names) await kv.purge(keyOf(name))
  })
}

/** Runs requests over a connection of their own. `signal` closes it. */
export async function whileOpen<Answer>(
  url: string,
  run: (kvm: NatsKvm, bucket: string) => Promise<Answer>,
  signal?: AbortSignal,
): Promise<Answer> {
  const { bucket, connect, kvmOf } = targetOf(url)
  try {
    const connection = await connect()
    const close = (): Promise<void> => connection.close()
    // oxlint-disable-next-line typescript/no-misused-promises -- it never rejects
    signal?.addEventListener('abort', close)
    try {
      signal?.throwIfAborted()
      return await run(kvmOf(connection), bucket)
    } finally {
      // oxlint-disable-next-line typescript/no-misused-promises -- it never rejects
      signal?.removeEventListener('abort', close)
      await close()
    }
  } catch (error) {
    throw failure(error, bucket)
  }
}

/** What a URL names. No message repeats the URL, because it may contain a password. */
export function targetOf(url: string): Target {
  const [, scheme, login, hosts = '', name = '', query = ''] =
    /^(natss?):\/\/(?:([^/?#]*)@)?([^/?#@]+)\/([^/?#@]*)(?:\?([^#]*))?$/i.exec(url) ?? []
  if (!hosts) throw invalid(`the URL of the NATS store cannot be read: ${SHAPE}; percent-encode special characters`)
  checkHosts(hosts, name + query, 'a NATS store')
  const options = optionsOf(query, ['replicas', 'minTtl', ...pemFiles], 'a NATS store')
  const bucket = bucketOf({ bucket: name ? decodePart(name, 'a NATS store') : undefined })
  const isTls = scheme?.toLowerCase() === 'natss'
  const [user, pass] = (login ?? '').split(/:(.*)/s).map(part => decodePart(part, 'a NATS store'))
  const servers = hosts.split(',')
  const names = servers.map(host => host.replace(/:\d*$/, ''))
  if (!isTls && pass) for (const host of names) warnOfClearPassword('NATS', host)
  const transport = need('@nats-io/transport-node') as { connect(options: object): Promise<Connection> }
  const { Kvm } = need('@nats-io/kv') as { Kvm: new (connection: Connection) => NatsKvm }
  const pem = Object.fromEntries(Object.entries(readPem(options, 'NATS')).map(([key, text]) => [key, String(text)]))
  const settings = {
    servers,
    maxReconnectAttempts: -1,
    reconnectTimeWait: 500,
    pingInterval: PING,
    timeout: DIAL,
    ignoreAuthErrorAbort: true, // two refused logins, such as while a server reloads them, must not end it for good
    ...(login && (pass === undefined ? { token: user } : { user, pass })),
    ...(isTls && { tls: pem }),
  }
  return {
    ...{ bucket, options, isTls, hosts: names },
    connect: () => transport.connect(settings),
    kvmOf: connection => new Kvm(connection),
  }
}

function need(name: string): unknown {
  const library = load(name)
  if (library) return library
  throw new LeaseError(
    'DRIVER_MISSING',
    `a nats: store needs ${name}: npm i @nats-io/kv @nats-io/transport-node ${WHERE}`,
  )
}

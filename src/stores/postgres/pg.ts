import { Sequence } from '../../contract/sequence.ts'
import { LONGEST_REQUEST } from '../../contract/time.ts'
import type { Opener } from '../shared/link.ts'
import type { Wire } from './client.ts'

interface Result {
  readonly rows: unknown[][]
}

interface Client {
  readonly processID: number | null
  readonly pipeline?: boolean
  connect(): Promise<unknown>
  /** A list of results for several statements. */
  query(query: object): Promise<Result | Result[]>
  on(event: string, listener: (...args: never[]) => void): unknown
  end(): Promise<void>
  unref?(): void
  readonly connection?: { readonly stream?: { destroy?(): void } }
}

type Config = Record<string, unknown>
type Constructor = new (config: Config) => Client

/** Set over whatever the caller has: the store has limits of its own, and tells a dead connection by them. */
const OWN = {
  connectionTimeoutMillis: LONGEST_REQUEST,
  query_timeout: 0,
  pipeline: true,
  keepAlive: true,
  keepAliveInitialDelayMillis: 1_000,
}

/** A `Pool` or a `Client` of pg. */
export function pg(client: object): Opener<Wire> | undefined {
  const { options, Client, connectionParameters: parameters } = client as Config
  if (typeof Client === 'function' && typeof options === 'object' && options !== null)
    return driver(Client as Constructor, options as Config)
  if (typeof parameters !== 'object' || parameters === null) return undefined
  const { password, ssl } = client as Config
  return driver(client.constructor as Constructor, { ...parameters, password, ssl })
}

function driver(Client: Constructor, options: Config): Opener<Wire> {
  // What is secret is not enumerable.
  const { password, ssl } = options
  const name = { fallback_application_name: 'holdfast' }
  const own = {
    ...name,
    ...options,
    ...(password !== undefined && { password }),
    ...(ssl !== undefined && { ssl }),
    ...OWN,
  }
  return {
    async open(signal) {
      const client = new Client(own)
      // Else whoever kills the connection kills the process.
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
      // The core holds the process while somebody waits for an answer; an idle connection never does.
      client.unref?.()
      return wire(client)
    },
  }
}

function wire(client: Client): Wire {
  let isOpen = true
  const turns = new Sequence()
  // Versions that cannot pipeline would queue it themselves, and some warn of that.
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
    async firstRow(text, values) {
      const results = await query({ text, values, rowMode: 'array' })
      const result = Array.isArray(results) ? results.at(-1) : results
      return result?.rows[0]
    },
    async listen(channel, heard) {
      client.on('notification', (message: { channel: string; payload?: string }) => {
        if (message.channel === channel) heard(message.payload ?? '')
      })
      await query({ text: `listen "${channel}"` })
    },
    onEnd: ended => void client.on('end', ended),
    isOpen: () => isOpen,
    close: () => destroy(client),
  }
}

/** `end()` waits for what is under way, and for a server that may be gone. */
function destroy(client: Client): void {
  client.end().catch(() => {})
  client.connection?.stream?.destroy?.()
}

import { connect, type NetConnectOpts, type Socket } from 'node:net'
import { invalid } from '../../contract/check.ts'
import type { Connection, Driver } from '../wire/connection.ts'
import { lookup } from '../wire/lookup.ts'

/** The part of mysql2 >= 3 or mysql2/promise that this store uses: a pool or a connection. */
export interface MysqlClient {
  query(...args: never[]): unknown
  escape(value: never): string
}

/** One connection. The text of a statement contains all its values, so nothing is prepared at the server. */
export interface MysqlConnection extends Connection {
  /** Resolves to the rows, each as a list of values. */
  rows(sql: string): Promise<unknown[][]>
  /** Resolves to the number of rows that a statement changed. */
  change(sql: string): Promise<number>
}

interface Core {
  on(event: 'error', listener: () => void): unknown
  query(query: object, answered: (error: Error | null, result: unknown) => void): unknown
  connect(connected: (error: Error | null) => void): void
  destroy(): void
}

type Opened = (error: Error | null, connection: Core) => void
interface Config {
  readonly host?: string
  readonly port?: number
  readonly socketPath?: string
  readonly stream?: unknown
  /** The pool that a connection belongs to. */
  readonly pool?: { readonly constructor: unknown; readonly config: object }
}

/** These override the caller's options. The store has its own time limits. */
const OWN = {
  connectTimeout: 0,
  rowsAsArray: true,
  typeCast: true,
  trace: false,
  nestTables: undefined,
  queryFormat: undefined,
}

/** Opens connections like those of the client. Throws `INVALID_ARGUMENT` if it is not a client of mysql2. */
export function driverOf(client: unknown, what: string): Driver<MysqlConnection> {
  // The clients of mysql2/promise wrap those of mysql2.
  const { pool, connection } = Object(client) as { pool?: unknown; connection?: unknown }
  const core = Object(pool ?? connection ?? client) as {
    config?: Config & { connectionConfig?: Config }
    execute?: unknown
  }
  const config = core.config?.connectionConfig ?? core.config
  // The package mysql has no `execute`, and ignores `stream`.
  if (!config || !('charsetNumber' in config) || typeof core.execute !== 'function')
    throw invalid(`${what} needs a pool or a connection of mysql2`)
  return { open: signal => open(core, config, signal) }
}

/**
 * A socket whose TLS compares the certificate with the host that it connects to. For an IP address mysql2 passes no name to
 * TLS. Node then uses this property of the socket, or otherwise "localhost": any certificate for localhost would be
 * accepted.
 */
export function socketTo(to: NetConnectOpts): Socket {
  const socket = connect({ lookup, ...to, noDelay: true, keepAlive: true, keepAliveInitialDelay: 1_000 })
  return Object.assign(socket, 'host' in to && { _host: to.host })
}

function open(core: object, config: Config, signal: AbortSignal): Promise<MysqlConnection> {
  return new Promise((resolve, reject) => {
    const { stream: given, socketPath, host, port } = config
    let socket: Socket | undefined
    const stream = (options: object): Socket => {
      const to = socketPath ? { path: socketPath } : { host, port: Number(port) }
      socket = typeof given === 'function' ? (given(options) as Socket) : socketTo(to)
      return socket
    }
    const own = Object.assign(Object.create(Object.getPrototypeOf(config)), config, OWN, { stream })
    const giveUp = (): void => {
      socket?.destroy() // mysql2 would wait for the server
      reject(signal.reason)
    }
    const opened: Opened = (error, connection) => {
      signal.removeEventListener('abort', giveUp)
      if (error) reject(error)
      if (error || !socket) return giveUp()
      socket.unref() // the core keeps the process alive while a request waits
      resolve(wire(connection, socket))
    }
    signal.addEventListener('abort', giveUp)
    if (config.pool) {
      const Pool = config.pool.constructor as new (o: object) => { getConnection(opened: Opened): void }
      const settings = { ...config.pool.config, connectionConfig: own, connectionLimit: 1, maxIdle: 1 }
      new Pool({ config: settings }).getConnection(opened)
    } else {
      const connection = new (core.constructor as new (options: object) => Core)({ config: own })
      connection.on('error', () => {})
      connection.connect(error => opened(error, connection))
    }
  })
}

function wire(core: Core, socket: Socket): MysqlConnection {
  core.on('error', () => {}) // otherwise killing the connection at the server would end the process
  // The statements in flight. mysql2 forgets them when it closes a connection itself.
  const rejects = new Set<(error: Error) => void>()
  const end = (): void => {
    for (const reject of rejects) reject(new Error('the connection was closed'))
  }
  socket.once('close', end)
  const query = <Result>(sql: string): Promise<Result> =>
    new Promise((resolve, reject) => {
      rejects.add(reject)
      if (socket.destroyed) return end()
      core.query({ sql }, (error, result) => {
        rejects.delete(reject)
        if (error) reject(error)
        else resolve(result as Result)
      })
    })
  return {
    rows: query,
    change: async sql => (await query<{ affectedRows: number }>(sql)).affectedRows,
    onEnd: ended => void socket.once('close', ended),
    isOpen: () => !socket.destroyed,
    close() {
      core.destroy()
      socket.destroy()
    },
  }
}

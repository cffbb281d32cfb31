import { chownSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { chosenGeneration, type Generation } from './binary.ts'
import { driver } from './driver.ts'
import { type PostgresServer, unprivileged } from './postgres.ts'
import { type Command, newPlace, type Place, ServerProcess } from './process.ts'

export interface PgBouncerOptions {
  /** @default 'transaction' */
  readonly mode?: 'session' | 'transaction' | 'statement'
  /** Connections to the server. @default 3 */
  readonly size?: number
  /** @default the chosen one */
  readonly generation?: Generation | undefined
}

/** The generations that tests of poolers must cover: the installed one, and the newest if the newest servers are chosen. */
export function poolerGenerations(): readonly Generation[] {
  return chosenGeneration() === 'installed' ? ['installed'] : ['installed', 'newest']
}

/** A pooler before this server, which asks for no password. */
export async function startPgBouncer(server: PostgresServer, options: PgBouncerOptions = {}): Promise<PgBouncer> {
  const pooler = new PgBouncer(await newPlace('pgbouncer'), server, options)
  await pooler.start()
  return pooler
}

export class PgBouncer extends ServerProcess {
  readonly #generation: Generation | undefined

  constructor(place: Place, server: PostgresServer, options: PgBouncerOptions) {
    super(place)
    const { mode = 'transaction', size = 3, generation } = options
    this.#generation = generation
    const lines = [
      '[databases]',
      `postgres = host=${server.host} port=${server.port} user=postgres`,
      '[pgbouncer]',
      `listen_addr = ${this.host}`,
      `listen_port = ${this.port}`,
      'unix_socket_dir =',
      'auth_type = any',
      `pool_mode = ${mode}`,
      `default_pool_size = ${size}`,
      'max_client_conn = 200',
      // Else it refuses for 15 s after the server was down.
      'server_login_retry = 0.1',
    ]
    writeFileSync(this.#configPath, `${lines.join('\n')}\n`)
    const user = unprivileged()
    if (user) chownSync(this.folder, user.uid, user.gid)
  }

  get url(): string {
    return `postgres://postgres@${this.host}:${this.port}/postgres`
  }

  protected override command(): Command {
    const args = [this.#configPath]
    return {
      binary: 'pgbouncer',
      debianPackage: 'pgbouncer',
      generation: this.#generation,
      args,
      user: unprivileged(),
    }
  }

  protected override async isReady(): Promise<boolean> {
    const { Client } = driver<typeof import('pg')>('pg')
    const client = new Client({ connectionString: this.url, connectionTimeoutMillis: 5_000 })
    client.on('error', () => {})
    try {
      await client.connect()
      await client.query('select 1')
      return true
    } finally {
      client.end().catch(() => {})
    }
  }

  get #configPath(): string {
    return join(this.folder, 'pgbouncer.ini')
  }
}

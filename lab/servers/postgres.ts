import { execFile, execFileSync } from 'node:child_process'
import { chmodSync, chownSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { promisify } from 'node:util'
import { findBinary } from './binary.ts'
import type { ShiftedClock } from './clock.ts'
import { driver } from './driver.ts'
import { type Command, newPlace, type Place, ServerProcess, stateOf } from './process.ts'
import { install } from './template.ts'
import { until } from './until.ts'

const PACKAGE = 'postgresql'

export interface PostgresOptions {
  /** The password of the user `postgres`. @default none is required */
  readonly password?: string | undefined
  /** Its clock. */
  readonly clock?: ShiftedClock | undefined
  /** Makes it a hot standby of this primary. */
  readonly standbyOf?: PostgresServer | undefined
  /** Further settings, by name. */
  readonly config?: Readonly<Record<string, string | number>> | undefined
}

/** One PostgreSQL server that serves, with the database `postgres`. */
export async function startPostgres(options: PostgresOptions = {}): Promise<PostgresServer> {
  const place = await newPlace('postgres')
  const user = unprivileged()
  if (user) chownSync(place.folder, user.uid, user.gid)
  if (options.standbyOf) await copyData(options.standbyOf, place)
  const server = new PostgresServer(place, options)
  await server.start()
  return server
}

/** It takes seconds on a busy machine. Meanwhile the proxies of this process must go on. */
async function copyData(primary: PostgresServer, { folder }: Place): Promise<void> {
  const { path, env } = findBinary('pg_basebackup', PACKAGE)
  const access = primary.password === undefined ? {} : { PGPASSWORD: primary.password }
  const from = ['-h', primary.host, '-p', `${primary.port}`, '-U', 'postgres']
  await promisify(execFile)(path, ['-D', dataIn(folder), ...from, '-R', '-c', 'fast'], {
    ...unprivileged(),
    cwd: folder,
    env: { ...process.env, ...env, ...access },
  })
}

function dataIn(folder: string): string {
  return join(folder, 'data')
}

/** PostgreSQL refuses to run as root. */
export function unprivileged(): { uid: number; gid: number } | undefined {
  if (process.getuid?.() !== 0) return undefined
  const number = (option: string): number => Number(execFileSync('id', [option, 'postgres'], { encoding: 'utf8' }))
  return { uid: number('-u'), gid: number('-g') }
}

export class PostgresServer extends ServerProcess {
  readonly password: string | undefined
  // Before the start, which would wait for a client that is missing.
  readonly #client = driver<typeof import('pg')>('pg').Client
  readonly #clock: ShiftedClock | undefined

  constructor(place: Place, { password, clock, standbyOf, config = {} }: PostgresOptions) {
    super(place)
    this.password = password
    this.#clock = clock
    const user = unprivileged()
    if (clock) chmodSync(dirname(clock.env.HOLDFAST_CLOCK ?? ''), 0o711)
    if (!standbyOf) {
      const secret = join(this.folder, 'password')
      if (password !== undefined) {
        writeFileSync(secret, password, { mode: 0o600 })
        if (user) chownSync(secret, user.uid, user.gid)
      }
      const access = password === undefined ? ['-A', 'trust'] : ['-A', 'scram-sha-256', '--pwfile', secret]
      install(this.#data, {
        ...findBinary('initdb', PACKAGE),
        args: folder => ['-D', folder, '-U', 'postgres', ...access, '-E', 'UTF8', '--locale=C', '-N'],
        user,
      })
      rmSync(secret, { force: true })
    }
    const settings: Record<string, string | number> = {
      listen_addresses: this.host,
      port: this.port,
      unix_socket_directories: this.folder,
      shared_buffers: '16MB',
      max_connections: 100,
      // In its folder. What a killed server has in /dev/shm stays there.
      dynamic_shared_memory_type: 'mmap',
      ...config,
    }
    const lines = Object.entries(settings).map(([name, value]) => `${name} = '${value}'`)
    writeFileSync(join(this.#data, 'postgresql.conf'), `${lines.join('\n')}\n`)
  }

  /** The URL for the user `postgres`, or for another. */
  url(user = 'postgres', password: string | undefined = this.password): string {
    const secret = password === undefined ? '' : `:${encodeURIComponent(password)}`
    return `postgres://${user}${secret}@${this.host}:${this.port}/postgres`
  }

  /** The URL through a proxy that listens on this port. */
  urlBy(port: number = this.port): string {
    return this.url().replace(`:${this.port}/`, `:${port}/`)
  }

  /** Runs a query, or several statements, as the user `postgres` on a new connection. Resolves to the rows. */
  async query<Row extends object>(text: string, values?: unknown[]): Promise<Row[]> {
    const client = new this.#client({ connectionString: this.url(), connectionTimeoutMillis: 5_000 })
    client.on('error', () => {})
    try {
      await client.connect()
      return (await client.query<Row>(text, values)).rows
    } finally {
      client.end().catch(() => {})
    }
  }

  /** By an immediate shutdown. A killed server leaves its shared memory to the machine, until it starts again. */
  override async stop(): Promise<void> {
    if (this.isRunning) {
      this.resume()
      await Promise.race([this.kill('SIGQUIT'), sleep(10_000, undefined, { ref: false })])
    }
    await super.stop()
  }

  /** Its children are process groups, too. */
  override async kill(signal: NodeJS.Signals = 'SIGKILL'): Promise<void> {
    if (!this.isRunning) return
    const children = this.#children()
    await super.kill(signal)
    for (const pid of children) if (signal === 'SIGKILL') send(pid, signal)
    await until('its children have ended', () => children.every(pid => !isAlive(pid)))
  }

  override async pause(): Promise<void> {
    await super.pause()
    for (const pid of this.#children()) {
      send(pid, 'SIGSTOP')
      await until(`process ${pid} is stopped`, () => !isAlive(pid) || stateOf(pid) === 'T', { every: 1 })
    }
  }

  override resume(): void {
    for (const pid of this.#children()) send(pid, 'SIGCONT')
    super.resume()
  }

  protected override command(): Command {
    const args = ['-D', this.#data]
    return { binary: 'postgres', debianPackage: PACKAGE, args, env: this.#clock?.env, user: unprivileged() }
  }

  protected override async isReady(): Promise<boolean> {
    return (await this.query('select 1')).length === 1
  }

  get #data(): string {
    return dataIn(this.folder)
  }

  #children(): number[] {
    const { pid } = this
    return readdirSync('/proc')
      .filter(name => /^\d+$/.test(name) && parentOf(Number(name)) === pid)
      .map(Number)
  }
}

function parentOf(pid: number): number | undefined {
  try {
    return Number(readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ').at(-1)?.split(' ')[1])
  } catch {
    return undefined
  }
}

function isAlive(pid: number): boolean {
  return statSync(`/proc/${pid}`, { throwIfNoEntry: false }) !== undefined && stateOf(pid) !== 'Z'
}

function send(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal)
  } catch {
    // it has ended
  }
}

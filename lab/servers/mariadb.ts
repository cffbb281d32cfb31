import { execFileSync } from 'node:child_process'
import { chmodSync, chownSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { findBinary } from './binary.ts'
import type { ShiftedClock } from './clock.ts'
import { driver } from './driver.ts'
import { type Command, newPlace, type Place, ServerProcess } from './process.ts'
import { install } from './template.ts'

const PACKAGE = 'mariadb-server'
const DATABASE = 'app'

export interface MariaDbOptions {
  /** The password of the user `app`, who may do everything. @default none */
  readonly password?: string | undefined
  /** Its clock. */
  readonly clock?: ShiftedClock | undefined
  /** Further settings, by name. */
  readonly config?: Readonly<Record<string, string | number>> | undefined
}

/** One MariaDB server that serves, with the database `app`. */
export async function startMariaDb(options: MariaDbOptions = {}): Promise<MariaDbServer> {
  const server = new MariaDbServer(await newPlace('mariadb'), options)
  await server.start()
  return server
}

/** MariaDB refuses to run as root. */
function unprivileged(): { uid: number; gid: number } | undefined {
  if (process.getuid?.() !== 0) return undefined
  const number = (option: string): number => Number(execFileSync('id', [option, 'mysql'], { encoding: 'utf8' }))
  return { uid: number('-u'), gid: number('-g') }
}

export class MariaDbServer extends ServerProcess {
  readonly password: string
  // Before the start, which would wait for a client that is missing.
  readonly #client = driver<typeof import('mysql2/promise')>('mysql2/promise')
  readonly #clock: ShiftedClock | undefined
  readonly #settings: string[]

  constructor(place: Place, { password = '', clock, config = {} }: MariaDbOptions) {
    super(place)
    this.password = password
    this.#clock = clock
    if (clock) chmodSync(dirname(clock.env.HOLDFAST_CLOCK ?? ''), 0o711)
    const user = unprivileged()
    if (user) chownSync(this.folder, user.uid, user.gid)
    const installer = findBinary('mariadb-install-db', PACKAGE)
    const argsFor = (data: string): string[] => [
      '--no-defaults',
      `--basedir=${join(installer.path, '../..')}`,
      `--datadir=${data}`,
      '--innodb-log-file-size=8M',
      '--innodb-buffer-pool-size=16M',
    ]
    install(this.#data, {
      ...installer,
      args: data => [
        ...argsFor(data),
        `--tmpdir=${data}`,
        '--skip-test-db',
        '--auth-root-authentication-method=normal',
      ],
      user,
    })
    const init = join(this.folder, 'init.sql')
    writeFileSync(
      init,
      `create database if not exists ${DATABASE};
create or replace user app@'%' identified by '${password}';
grant all on *.* to app@'%' with grant option;
alter user root@localhost account lock;
`,
      { mode: 0o600 },
    )
    if (user) chownSync(init, user.uid, user.gid)
    const settings = { performance_schema: 'off', skip_name_resolve: 'on', ...config }
    this.#settings = [
      ...argsFor(this.#data),
      // Each server deletes at its start what others keep in a folder for temporary files.
      `--tmpdir=${this.folder}`,
      `--init-file=${init}`,
      `--bind-address=${this.host}`,
      `--port=${this.port}`,
      `--socket=${join(this.folder, 'socket')}`,
      ...Object.entries(settings).map(([name, value]) => `--${name.replaceAll('_', '-')}=${value}`),
    ]
  }

  /** The URL for the user `app`, or for another. */
  url(user = 'app', password: string = this.password): string {
    const secret = password === '' ? '' : `:${encodeURIComponent(password)}`
    return `mysql://${user}${secret}@${this.host}:${this.port}/${DATABASE}`
  }

  /** The URL through a proxy that listens on this port. */
  urlBy(port: number = this.port): string {
    return this.url().replace(`:${this.port}/`, `:${port}/`)
  }

  /** Runs a query as the user `app` on a new connection. Resolves to the rows. */
  async query<Row extends object>(text: string): Promise<Row[]> {
    const client = await this.#client.createConnection({ uri: this.url(), connectTimeout: 5_000 })
    try {
      return (await client.query(text))[0] as Row[]
    } finally {
      client.destroy()
    }
  }

  protected override command(): Command {
    return {
      binary: 'mariadbd',
      debianPackage: PACKAGE,
      args: this.#settings,
      env: this.#clock?.env,
      user: unprivileged(),
    }
  }

  protected override async isReady(): Promise<boolean> {
    return (await this.query('select 1')).length === 1
  }

  get #data(): string {
    return join(this.folder, 'data')
  }
}

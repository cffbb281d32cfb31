import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { ShiftedClock } from './clock.ts'
import { driver } from './driver.ts'
import { type Command, newPlace, type Place, ServerProcess } from './process.ts'
import { until } from './until.ts'

export interface RedisOptions {
  /** The password of the default user. */
  readonly password?: string | undefined
  /** ACL rules, one user each: `'app on >secret ~holdfast:* &holdfast:* +@all'`. */
  readonly users?: readonly string[] | undefined
  /** @default 'noeviction' */
  readonly maxmemoryPolicy?: string | undefined
  /** When its append-only file is synced. With `'no'` a restart forgets everything. @default 'no' */
  readonly appendonly?: 'no' | 'everysec' | 'always' | undefined
  /** Makes it a read-only replica of this master, in sync once started. */
  readonly replicaOf?: RedisServer | undefined
  /** Its clock. */
  readonly clock?: ShiftedClock | undefined
  /** Further lines of its configuration, by name. */
  readonly config?: Readonly<Record<string, string | number>> | undefined
}

/** One Redis node that serves. */
export async function startRedis(options: RedisOptions = {}): Promise<RedisServer> {
  const { password, users = [], maxmemoryPolicy = 'noeviction', appendonly = 'no', replicaOf, clock, config } = options
  const lines = [
    'save ""',
    `appendonly ${appendonly === 'no' ? 'no' : 'yes'}`,
    `appendfsync ${appendonly}`,
    `maxmemory-policy ${maxmemoryPolicy}`,
    // By default a new replica waits 5 s for further ones.
    'repl-diskless-sync-delay 0',
    ...users.map(user => `user ${user}`),
    ...Object.entries(config ?? {}).map(([name, value]) => `${name} ${value}`),
  ]
  if (password) lines.push(`requirepass ${password}`)
  if (replicaOf) lines.push(`replicaof ${replicaOf.host} ${replicaOf.port}`)
  if (replicaOf?.password) lines.push(`masterauth ${replicaOf.password}`)
  const server = new RedisServer(await newPlace('redis'), {
    lines,
    password,
    clock,
    isReplica: replicaOf !== undefined,
  })
  await server.start()
  return server
}

export interface RedisLaunch {
  readonly lines: readonly string[]
  readonly password?: string | undefined
  readonly clock?: ShiftedClock | undefined
  readonly isSentinel?: boolean
  /** A replica is ready once it is in sync with its master. */
  readonly isReplica?: boolean
}

export class RedisServer extends ServerProcess {
  readonly password: string | undefined
  // Before the start, which would wait for a client that is missing.
  readonly #client = driver<typeof import('ioredis')>('ioredis').Redis
  readonly #launch: RedisLaunch

  constructor(place: Place, launch: RedisLaunch) {
    super(place)
    this.password = launch.password
    this.#launch = launch
    const lines = [`bind ${this.host}`, `port ${this.port}`, `dir ${this.folder}`, ...launch.lines]
    writeFileSync(this.#configPath, `${lines.join('\n')}\n`)
  }

  /** For the default user: `redis://:password@127.0.0.1:port`. */
  get url(): string {
    return `redis://${this.password ? `:${encodeURIComponent(this.password)}@` : ''}${this.host}:${this.port}`
  }

  /** Runs a command as the default user on a new connection. Rejects after 5 s without a reply. */
  async call(command: string, ...args: readonly (string | number)[]): Promise<unknown> {
    const client = new this.#client({
      host: this.host,
      port: this.port,
      ...(this.password && { password: this.password }),
      lazyConnect: true,
      enableReadyCheck: false,
      disableClientInfo: true,
      maxRetriesPerRequest: 0,
      retryStrategy: () => null,
      commandTimeout: 5_000,
    })
    client.on('error', () => {})
    try {
      await client.connect()
      return await client.call(command, ...args)
    } finally {
      client.disconnect()
    }
  }

  /** The fields of `INFO`, all or of one section: `(await redis.info('server')).run_id`. */
  async info(section = 'default'): Promise<Record<string, string>> {
    return fields((await this.call('INFO', section)) as string)
  }

  /** Waits until a replica of this server has all that was written before. */
  async replicatedTo(replica: RedisServer): Promise<void> {
    const { master_repl_offset: written } = await this.info('replication')
    await until('the replica has what was written before', async () => {
      const { slave_repl_offset: applied } = await replica.info('replication')
      return Number(applied) >= Number(written)
    })
  }

  protected override command(): Command {
    const args = [this.#configPath, ...(this.#launch.isSentinel ? ['--sentinel'] : [])]
    return { binary: 'redis-server', debianPackage: 'redis-server', args, env: this.#launch.clock?.env }
  }

  protected override async isReady(): Promise<boolean> {
    if (!this.#launch.isReplica) return (await this.call('PING')) === 'PONG'
    const { role, master_link_status } = await this.info('replication')
    return role === 'master' || master_link_status === 'up'
  }

  get #configPath(): string {
    return join(this.folder, 'redis.conf')
  }
}

/** The lines `name:value` of `INFO`. */
export function fields(text: string): Record<string, string> {
  return Object.fromEntries(Array.from(text.matchAll(/^(\w+):(.*?)\r?$/gm), ([, name, value]) => [name, value]))
}

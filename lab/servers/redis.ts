import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fields } from '../../src/stores/redis/info.ts'
import type { ShiftedClock } from './clock.ts'
import { driver } from './driver.ts'
import { type Command, newPlace, type Place, ServerProcess } from './process.ts'

export interface RedisOptions {
  /** Of the default user. */
  readonly password?: string | undefined
  /** ACL rules, one user each: `'app on >secret ~holdfast:* &holdfast:* +@all'`. */
  readonly users?: readonly string[] | undefined
  /** @default 'noeviction' */
  readonly maxmemoryPolicy?: string | undefined
  /** When its append-only file is synced; `'no'` keeps nothing over a restart. @default 'no' */
  readonly appendonly?: 'no' | 'everysec' | 'always' | undefined
  /** Makes it a read-only replica, in step with this master once started. */
  readonly replicaOf?: RedisServer | undefined
  /** The clock it lives by. */
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
    // Otherwise a new replica waits for 5 s for others to come.
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
  /** Ready only once in step with its master. */
  readonly isReplica?: boolean
}

export class RedisServer extends ServerProcess {
  readonly password: string | undefined
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

  /** One command as the default user, on a connection of its own. Rejects if there is no reply within 5 s. */
  async call(command: string, ...args: readonly (string | number)[]): Promise<unknown> {
    const { Redis } = driver<typeof import('ioredis')>('ioredis')
    const client = new Redis({
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

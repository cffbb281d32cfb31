import { resolve } from 'node:path'
import { invalid } from './contract/check.ts'
import type { Store } from './contract/store.ts'
import type { FenceSqlOptions, OpenMarks } from './fencing/open.ts'

/**
 * One engine, as a row of the table below. URLs, the entry points of the package, the build, the generated tables of the
 * documentation and the tests read it: `npm run generate` writes what is derived.
 */
export interface Engine {
  /** The folder `src/stores/NAME`, the entry point `holdfast/NAME` and the page `docs/stores/NAME.md`. */
  readonly name: string
  /** The schemes of its URLs, in lower case, with the colon. */
  readonly schemes: readonly string[]
  /** The URL that the documentation shows as an example. */
  readonly example: string
  /** What to install for a URL, one of these. The first is the usual choice. */
  readonly clients: readonly string[]
  open(url: string): Promise<Store>
  /** The URL by which a thread or a child process opens the same store. `undefined`: none can. @default the URL */
  elsewhere?(url: string): string | undefined
  /** Creates what must exist before the first use, and resolves to its name. @default nothing must exist */
  migrate?(url: string): Promise<string>
  /** The SQL that `migrate` runs. */
  migration?(url: string): Promise<string>
  /** Creates the default fence in the database of the leases, and resolves to its name. @default fences need other data */
  installFence?(url: string): Promise<string>
  /** The SQL that `installFence` runs. */
  leaseFenceSql?(url: string): Promise<string>
  /** Deletes everything stored for these names, held or not. @default the store keeps nothing of a free name */
  forgetNames?(url: string, names: readonly string[]): Promise<void>
  /** Opens the high-water marks that fences store there. @default there are none */
  openMarks?(url: string): Promise<OpenMarks>
  /** The SQL that creates the marks. @default none is needed */
  fenceSql?(url: string, options: FenceSqlOptions): Promise<string>
}

// An engine is loaded when it is used, so a program does not wait for the others. The paths are literals, because bundlers
// follow no others.
export const ENGINES: readonly Engine[] = [
  {
    name: 'sqlite',
    schemes: ['sqlite:'],
    example: 'sqlite:leases.db',
    clients: [],
    open: async url => (await import('./stores/sqlite/open.ts')).openSqlite(url),
    // The process may change its working directory before the file is opened.
    elsewhere: url => `sqlite:${resolve(url.slice('sqlite:'.length))}`,
    openMarks: async url => (await import('./fencing/sqlite/open.ts')).openMarks(url),
    fenceSql: async (url, options) => (await import('./fencing/sqlite/open.ts')).fenceSql(url, options),
  },
  {
    name: 'memory',
    schemes: ['memory:'],
    example: 'memory:',
    clients: [],
    open: async url => (await import('./stores/memory/open.ts')).openMemory(url),
    elsewhere: () => undefined,
  },
  {
    name: 'redis',
    schemes: ['redis:', 'rediss:'],
    example: 'redis://localhost:6379',
    clients: ['ioredis', 'redis', 'iovalkey'],
    open: async url => (await import('./stores/redis/open.ts')).openRedis(url),
    forgetNames: async (url, names) => (await import('./stores/redis/open.ts')).forgetNames(url, names),
    openMarks: async url => (await import('./fencing/redis/open.ts')).openMarks(url),
  },
  {
    name: 'redlock',
    schemes: ['redlock:', 'redlocks:'],
    example: 'redlock://a,b,c,d,e',
    clients: ['ioredis', 'redis', 'iovalkey'],
    open: async url => (await import('./stores/redlock/open.ts')).openRedlock(url),
    forgetNames: async (url, names) => (await import('./stores/redlock/open.ts')).forgetNames(url, names),
  },
  {
    name: 'postgres',
    schemes: ['postgres:', 'postgresql:'],
    example: 'postgres://app@localhost/app',
    clients: ['pg', 'postgres'],
    open: async url => (await import('./stores/postgres/open.ts')).openPostgres(url),
    forgetNames: async (url, names) => (await import('./stores/postgres/open.ts')).forgetNames(url, names),
    migrate: async url => (await import('./stores/postgres/open.ts')).migrateUrl(url),
    migration: async url => (await import('./stores/postgres/open.ts')).migrationOf(url),
    installFence: async url => (await import('./fencing/postgres/open.ts')).installFence(url),
    leaseFenceSql: async url => (await import('./fencing/postgres/open.ts')).leaseFenceSql(url),
    openMarks: async url => (await import('./fencing/postgres/open.ts')).openMarks(url),
    fenceSql: async (url, options) => (await import('./fencing/postgres/open.ts')).fenceSql(url, options),
  },
  {
    name: 'mysql',
    schemes: ['mysql:', 'mariadb:'],
    example: 'mysql://app@localhost/app',
    clients: ['mysql2'],
    open: async url => (await import('./stores/mysql/open.ts')).openMysql(url),
    forgetNames: async (url, names) => (await import('./stores/mysql/open.ts')).forgetNames(url, names),
    migrate: async url => (await import('./stores/mysql/open.ts')).migrateUrl(url),
    migration: async url => (await import('./stores/mysql/open.ts')).migrationOf(url),
    installFence: async url => (await import('./fencing/mysql/open.ts')).installFence(url),
    leaseFenceSql: async () => (await import('./fencing/mysql/open.ts')).leaseFenceSql(),
    openMarks: async url => (await import('./fencing/mysql/open.ts')).openMarks(url),
    fenceSql: async (url, options) => (await import('./fencing/mysql/open.ts')).fenceSql(url, options),
  },
  {
    name: 'etcd',
    schemes: ['etcd:', 'etcds:'],
    example: 'etcd://localhost:2379',
    clients: [],
    open: async url => (await import('./stores/etcd/open.ts')).openEtcd(url),
  },
  {
    name: 'zookeeper',
    schemes: ['zookeeper:'],
    example: 'zookeeper://localhost:2181',
    clients: [],
    open: async url => (await import('./stores/zookeeper/open.ts')).openZooKeeper(url),
  },
  {
    name: 'dynamodb',
    schemes: ['dynamodb:'],
    example: 'dynamodb://eu-central-1/holdfast',
    clients: ['@aws-sdk/client-dynamodb'],
    open: async url => (await import('./stores/dynamodb/open.ts')).openDynamoDb(url),
    forgetNames: async (url, names) => (await import('./stores/dynamodb/open.ts')).forgetNames(url, names),
    migrate: async url => (await import('./stores/dynamodb/open.ts')).migrateUrl(url),
  },
  {
    name: 'azure-blob',
    schemes: ['azure-blob:'],
    example: 'azure-blob:leases',
    clients: ['@azure/storage-blob'],
    open: async url => (await import('./stores/azure-blob/open.ts')).openAzureBlob(url),
    forgetNames: async (url, names) => (await import('./stores/azure-blob/open.ts')).forgetNames(url, names),
    migrate: async url => (await import('./stores/azure-blob/open.ts')).migrateUrl(url),
  },
  {
    name: 'nats',
    schemes: ['nats:', 'natss:'],
    example: 'nats://localhost:4222/holdfast',
    clients: ['@nats-io/kv @nats-io/transport-node'],
    open: async url => (await import('./stores/nats/open.ts')).openNats(url),
    forgetNames: async (url, names) => (await import('./stores/nats/open.ts')).forgetNames(url, names),
    migrate: async url => (await import('./stores/nats/open.ts')).migrateUrl(url),
  },
]

/** The engine of a URL. Throws `INVALID_ARGUMENT` for an unknown scheme or an invalid port. */
export function engineOf(url: string): Engine {
  if (typeof url !== 'string')
    throw invalid(
      `the store must be a URL in a string, such as sqlite:leases.db, not ${typeof url}; for a client: createLocks(redis(client))`,
    )
  if (/^[\s"']|[\s"']$/.test(url))
    throw invalid('the URL of the store begins or ends with white space or a quotation mark: remove it')
  const engine = engineAt(url)
  if (engine) {
    checkPorts(url)
    return engine
  }
  const scheme = schemeOf(url)
  const known = ENGINES.flatMap(({ schemes }) => schemes).join(' ')
  // Digits, then a slash or the end. Other text after the colon may be a password, which is never printed.
  const [address] = /^[a-z0-9.-]+:\d{1,5}(?=\/|$)/i.exec(url) ?? []
  if (address)
    throw invalid(`the URL of the store has no scheme: write one before ${address}, such as redis://${address}`)
  const what =
    scheme === undefined ? 'the URL of the store has no scheme' : `no store has the scheme ${scheme.slice(0, -1)}`
  throw invalid(`${what}: use one of ${known}, for example sqlite:./leases.db or redis://localhost:6379`)
}

/** The engine of a URL. `undefined`: the scheme is unknown. */
export function engineAt(url: string): Engine | undefined {
  const scheme = schemeOf(url)
  return ENGINES.find(({ schemes }) => scheme !== undefined && schemes.includes(scheme))
}

/** The scheme of a URL, in lower case, with the colon. */
export function schemeOf(url: string): string | undefined {
  return /^[a-z][a-z0-9+.-]*:/i.exec(url)?.[0].toLowerCase()
}

/** Throws for an invalid port. It searches only after the last @, because a password may come before it. */
function checkPorts(url: string): void {
  const [, hosts = ''] = /^[^:]*:\/\/(?:[^/?#]*@)?([^/?#@]*)(?:[/?#][^@]*)?$/.exec(url) ?? []
  for (const host of hosts.split(',')) {
    const port = /:(\d+)$/.exec(host)?.[1]
    if (port !== undefined && Number(port) > 65_535)
      throw invalid(`the URL of the store has the port ${port}: give one from 0 to 65535`)
  }
}

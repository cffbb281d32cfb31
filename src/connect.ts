import { resolve } from 'node:path'
import { invalid } from './contract/check.ts'
import type { Store } from './contract/store.ts'
import type { Clock } from './contract/time.ts'
import { coreEnvironment } from './core/core.ts'
import { type Locks, StoreLocks } from './core/locks.ts'
import type { LocksDefaults } from './core/options.ts'
import type { OpenRenewer } from './core/renewals.ts'

// Each engine is loaded when it is asked for: a program that uses one does not wait for the others.
const schemes: Record<string, (url: string) => Promise<Store>> = {
  'sqlite:': openSqlite,
  'memory:': openMemory,
  'redis:': openRedis,
  'rediss:': openRedis,
  'redlock:': openRedlock,
  'redlocks:': openRedlock,
  'postgres:': openPostgres,
  'postgresql:': openPostgres,
  'etcd:': openEtcd,
  'etcds:': openEtcd,
  'zookeeper:': openZooKeeper,
}

/**
 * Opens the store that a URL names and what it needs to be reached; `close()` closes both.
 *
 *     sqlite:PATH   memory:   redis[s]://[user:password@]host[:port][/database][?prefix=…]
 *     redlock[s]://[user:password@]host[:port],host[:port],…[/database][?prefix=…&maxTtl=…]
 *     postgres[ql]://[user:password@]host[:port][/database][?schema=…&table=…&create=true&direct=…]
 *     etcd[s]://[user:password@]host[:port][,host[:port]…][?prefix=…]
 *     zookeeper://[user:password@]host[:port][,host[:port] …][/chroot][?prefix=…]
 *
 * Rejects `INVALID_ARGUMENT` for a URL that cannot be right, `DRIVER_MISSING` with the line that installs it. Whether
 * the server answers shows at the first request.
 */
export async function connect(url: string, defaults: LocksDefaults = {}): Promise<Locks> {
  const store = await openStore(url)
  const environment = coreEnvironment()
  try {
    return new StoreLocks(store, defaults, environment, heartbeatThread(url, environment.clock))
  } catch (error) {
    await store[Symbol.asyncDispose]()
    throw error
  }
}

/** The store alone, for those who wrap it. */
export async function openStore(url: string): Promise<Store> {
  return openerOf(url)(url)
}

/** What opens the store that a URL names. Throws `INVALID_ARGUMENT` for a scheme that no store has. */
export function openerOf(url: string): (url: string) => Promise<Store> {
  if (typeof url !== 'string')
    throw invalid(`a store is named by a URL, such as sqlite:leases.db, not by ${typeof url}`)
  const scheme = /^[a-z][a-z0-9+.-]*:/i.exec(url)?.[0].toLowerCase()
  const open = scheme === undefined ? undefined : schemes[scheme]
  if (open) {
    checkPorts(url)
    return open
  }
  const known = Object.keys(schemes).join(' ')
  const what = scheme === undefined ? 'a store URL begins with its scheme' : `no store has the scheme ${scheme}`
  throw invalid(`${what}; there are ${known}, for example sqlite:./leases.db or redis://localhost:6379`)
}

/** Refuses a port that cannot exist. It looks only after the last @, because a password may come before it. */
function checkPorts(url: string): void {
  const [, hosts = ''] = /^[^:]*:\/\/(?:[^/?#]*@)?([^/?#@]*)(?:[/?#][^@]*)?$/.exec(url) ?? []
  for (const host of hosts.split(',')) {
    const port = /:(\d+)$/.exec(host)?.[1]
    if (port !== undefined && Number(port) > 65_535)
      throw invalid(`the URL of the store has port ${port}: a port is at most 65535`)
  }
}

/** How to begin a thread that opens the same store; `undefined` for one that no other thread shares. */
function heartbeatThread(url: string, clock: Clock): OpenRenewer | undefined {
  if (/^memory:/i.test(url)) return undefined
  // The process may change its folder before the thread opens the file.
  const [, scheme, path = ''] = /^(sqlite:)(.*)$/is.exec(url) ?? []
  const absolute = scheme === undefined ? url : scheme + resolve(path)
  return async pulse => {
    const { HeartbeatThread } = await import('./core/thread/thread.ts')
    return new HeartbeatThread(absolute, clock, pulse)
  }
}

/** The path is taken as it stands, from the current folder if it is relative. */
async function openSqlite(url: string): Promise<Store> {
  if (/^sqlite:\/\/(?!\/)/i.test(url))
    throw invalid(`${JSON.stringify(url)} names a host: write sqlite:PATH, such as sqlite:./leases.db`)
  const { sqlite } = await import('./stores/sqlite/index.ts')
  return sqlite(url.slice('sqlite:'.length))
}

const spaces = new Map<string, Store>()

/** All who open `memory:` in this process share one store; `memory:other` is another. */
async function openMemory(url: string): Promise<Store> {
  const { memory } = await import('./stores/memory/index.ts')
  const store = spaces.get(url) ?? memory()
  spaces.set(url, store)
  return store
}

async function openRedis(url: string): Promise<Store> {
  const { openRedis } = await import('./stores/redis/open.ts')
  return openRedis(url)
}

async function openRedlock(url: string): Promise<Store> {
  const { openRedlock } = await import('./stores/redlock/open.ts')
  return openRedlock(url)
}

async function openPostgres(url: string): Promise<Store> {
  const { openPostgres } = await import('./stores/postgres/open.ts')
  return openPostgres(url)
}

async function openEtcd(url: string): Promise<Store> {
  const { openEtcd } = await import('./stores/etcd/open.ts')
  return openEtcd(url)
}

async function openZooKeeper(url: string): Promise<Store> {
  const { openZooKeeper } = await import('./stores/zookeeper/open.ts')
  return openZooKeeper(url)
}

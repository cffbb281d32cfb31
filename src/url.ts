import { invalid } from './check.ts'
import { createLocks, type Locks, type LocksDefaults } from './locks.ts'
import type { Store } from './store.ts'

// Each engine is loaded when it is asked for: a program that uses one does not wait for the others.
const schemes: Record<string, (url: string) => Promise<Store>> = {
  'sqlite:': openSqlite,
  'memory:': openMemory,
  'redis:': openRedis,
  'rediss:': openRedis,
}

/**
 * Opens the store that a URL names and what it needs to be reached; `close()` closes both.
 *
 *     sqlite:PATH   memory:   redis[s]://[user:password@]host[:port][/database][?prefix=…]
 *
 * Rejects `INVALID_ARGUMENT` for a URL that cannot be right, `DRIVER_MISSING` with the line that installs it. Whether
 * the server answers shows at the first request.
 */
export async function connect(url: string, defaults: LocksDefaults = {}): Promise<Locks> {
  const store = await openStore(url)
  try {
    return createLocks(store, defaults)
  } catch (error) {
    await store[Symbol.asyncDispose]()
    throw error
  }
}

/** The store alone, for those who wrap it. */
export async function openStore(url: string): Promise<Store> {
  if (typeof url !== 'string')
    throw invalid(`a store is named by a URL, such as sqlite:leases.db, not by ${typeof url}`)
  const scheme = /^[a-z][a-z0-9+.-]*:/i.exec(url)?.[0].toLowerCase()
  const open = scheme === undefined ? undefined : schemes[scheme]
  if (open) return open(url)
  const known = Object.keys(schemes).join(' ')
  const what = scheme === undefined ? 'a store URL begins with its scheme' : `no store has the scheme ${scheme}`
  throw invalid(`${what}; there are ${known}, for example sqlite:./leases.db or redis://localhost:6379`)
}

/** The path is taken as it stands, from the current folder if it is relative. */
async function openSqlite(url: string): Promise<Store> {
  if (/^sqlite:\/\/(?!\/)/i.test(url))
    throw invalid(`${JSON.stringify(url)} names a host: write sqlite:PATH, such as sqlite:./leases.db`)
  const { sqlite } = await import('./stores/sqlite.ts')
  return sqlite(url.slice('sqlite:'.length))
}

const spaces = new Map<string, Store>()

/** All who open `memory:` in this process share one store; `memory:other` is another. */
async function openMemory(url: string): Promise<Store> {
  const { memory } = await import('./stores/memory.ts')
  const store = spaces.get(url) ?? memory()
  spaces.set(url, store)
  return store
}

async function openRedis(url: string): Promise<Store> {
  const { openRedis } = await import('./stores/redis/open.ts')
  return openRedis(url)
}

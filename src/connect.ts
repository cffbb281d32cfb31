import type { Store } from './contract/store.ts'
import type { Clock } from './contract/time.ts'
import { coreEnvironment } from './core/core.ts'
import type { LocksDefaults } from './core/options.ts'
import type { OpenRenewer } from './core/renewer.ts'
import { type Locks, StoreLocks } from './create-locks.ts'
import { engineOf } from './engines.ts'

/**
 * Opens the store that a URL names and what it needs to be reached; `close()` closes both.
 *
 *     sqlite:PATH   memory:   redis[s]://[user:password@]host[:port][/database][?prefix=…]
 *     redlock[s]://[user:password@]host[:port],host[:port],…[/database][?prefix=…&maxTtl=…]
 *     postgres[ql]://[user:password@]host[:port][/database][?schema=…&table=…&create=true&direct=…]
 *     mysql://[user:password@]host[:port]/database[?table=…&create=true&tls=true]
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
  return engineOf(url).open(url)
}

/** Starts a heartbeat thread that opens the same store; `undefined` for a store that threads cannot share. */
function heartbeatThread(url: string, clock: Clock): OpenRenewer | undefined {
  const engine = engineOf(url)
  const shared = engine.elsewhere ? engine.elsewhere(url) : url
  if (shared === undefined) return undefined
  return async statistics => {
    const { HeartbeatThread } = await import('./core/thread/heartbeat-thread.ts')
    // In the package this file is part of one at the top of `dist`.
    const script = import.meta.url.endsWith('.ts') ? './heartbeat-worker.ts' : './thread/worker.js'
    return new HeartbeatThread(new URL(script, import.meta.url), shared, clock, statistics)
  }
}

import type { Store } from './contract/store.ts'
import type { Clock } from './contract/time.ts'
import { coreEnvironment } from './core/core.ts'
import type { LocksDefaults } from './core/options.ts'
import type { OpenRenewer } from './core/renewer.ts'
import { type Locks, StoreLocks } from './create-locks.ts'
import { engineOf } from './engines.ts'

/**
 * Makes locks over the store of a URL. If the store needs a client library, it is loaded from `node_modules`. `close()`
 * also closes what was opened. `defaults` apply to every call that does not override them.
 *
 *     const locks = await connect('redis://localhost:6379', { ttl: 10_000 }) // milliseconds
 *
 * The URLs:
 *
 *     sqlite:PATH   memory:   redis[s]://[user:password@]host[:port][/database][?prefix=…]
 *     redlock[s]://[user:password@]host[:port],host[:port],…[/database][?prefix=…&maxTtl=…]
 *     postgres[ql]://[user:password@]host[:port][/database][?table=[SCHEMA.]TABLE&create=true&direct=…]
 *     mysql://[user:password@]host[:port]/database[?table=…&create=true&tls=true]
 *     etcd[s]://[user:password@]host[:port][,host[:port]…][?prefix=…]
 *     zookeeper://[user:password@]host[:port][,host[:port]…][/chroot][?prefix=…]
 *
 * Rejects `INVALID_ARGUMENT` for an invalid URL or option, and `DRIVER_MISSING` with the command that installs the client.
 * It does not connect: the first call does, and reports a server that cannot be reached.
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

/** Opens only the store, for code that wraps it. Rejects as `connect` does. Dispose of the store at the end. */
export async function openStore(url: string): Promise<Store> {
  return engineOf(url).open(url)
}

/** Returns a function that starts a heartbeat thread over the same store. `undefined`: threads cannot share the store. */
function heartbeatThread(url: string, clock: Clock): OpenRenewer | undefined {
  const engine = engineOf(url)
  const shared = engine.elsewhere ? engine.elsewhere(url) : url
  if (shared === undefined) return undefined
  return async statistics => {
    const { HeartbeatThread } = await import('./core/thread/heartbeat-thread.ts')
    // In the package this file is bundled into a file at the top of `dist`.
    const script = import.meta.url.endsWith('.ts') ? './heartbeat-worker.ts' : './thread/worker.js'
    return new HeartbeatThread(new URL(script, import.meta.url), shared, clock, statistics)
  }
}

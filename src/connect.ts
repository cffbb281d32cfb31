import { checkBoolean, checkKeys, checkSignal, checkWait } from './contract/check.ts'
import type { Store } from './contract/store.ts'
import type { Clock } from './contract/time.ts'
import { coreEnvironment } from './core/core.ts'
import { defaultKeys, type LocksDefaults } from './core/options.ts'
import { untilAnswered } from './core/ping.ts'
import type { OpenRenewer } from './core/renewer.ts'
import { type Locks, StoreLocks } from './create-locks.ts'
import { engineOf } from './engines.ts'

/** The options of `connect`, and the defaults of its locks. */
export interface ConnectOptions extends LocksDefaults {
  /**
   * Milliseconds for which `connect` retries a store that does not answer. `Infinity`: until `signal` aborts.
   * @default 5,000
   */
  readonly timeout?: number | undefined
  /** Ends the call, which then rejects with its reason. Has no effect on the locks. */
  readonly signal?: AbortSignal | undefined
  /** Does not connect: the first request does. For functions that must start fast. @default false */
  readonly lazy?: boolean | undefined
}

const connectKeys: ReadonlySet<string> = new Set([...defaultKeys, 'timeout', 'signal', 'lazy'])

const DEFAULT_TIMEOUT = 5_000

/**
 * Makes locks over the store of a URL, and asks it until it answers. If the store needs a client library, it is loaded from
 * `node_modules`. `close()` also closes what was opened. The other options apply to every call that does not override them.
 *
 *     const locks = await connect('redis://localhost:6379', { ttl: 10_000 }) // milliseconds
 *
 * The table in docs/stores/README.md has the URL of each store, and its page the options of the URL.
 *
 * Rejects, and leaves nothing open:
 * - `ACCESS_DENIED`, `NOT_MIGRATED`, `FORMAT_MISMATCH`: at once, when the store says so.
 * - `STORE_UNAVAILABLE`: the store, or a majority of Redlock, did not answer within `timeout`. The message has the reason.
 * - `INVALID_ARGUMENT`: the URL or an option is invalid, or does not suit the server, such as TLS to a port without it.
 * - `DRIVER_MISSING`: with the command that installs the client.
 * - The reason of `signal`, when it aborts.
 */
export async function connect(url: string, options: ConnectOptions = {}): Promise<Locks> {
  checkKeys(options, connectKeys, 'connect')
  const { timeout = DEFAULT_TIMEOUT, signal, lazy = false, ...defaults } = options
  checkWait(timeout, 'timeout')
  checkSignal(signal)
  checkBoolean(lazy, 'lazy')
  signal?.throwIfAborted()
  const store = await openStore(url)
  const environment = coreEnvironment()
  let locks: ConnectedLocks | undefined
  try {
    locks = new ConnectedLocks(store, defaults, environment, heartbeatThread(url, environment.clock))
    if (!lazy) await locks.connect(timeout, signal)
    return locks
  } catch (error) {
    await (locks?.close() ?? store[Symbol.asyncDispose]())
    throw error
  }
}

class ConnectedLocks extends StoreLocks {
  connect(timeout: number, signal?: AbortSignal): Promise<void> {
    return this.answered(signal, (asker, cancel) => untilAnswered(asker, timeout, cancel))
  }
}

/**
 * Opens only the store, for code that wraps it. Sends no request. Dispose of the store at the end. Rejects
 * `INVALID_ARGUMENT` and `DRIVER_MISSING`.
 */
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

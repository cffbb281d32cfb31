import { createLocks, type Locks, type Store } from '../../src/index.ts'
import { type RedisClient, redis } from '../../src/stores/redis/index.ts'
import { redlock } from '../../src/stores/redlock/index.ts'

/** How leases are stored. They have no equivalent in the old libraries. */
export interface StoreSettings {
  /** The prefix of all keys. Use the same value wherever these names are used. @default 'holdfast' */
  readonly prefix?: string | undefined
  /** With several clients: milliseconds after which a server counts as unresponsive. @default 50 */
  readonly nodeTimeout?: number | undefined
  /** With several clients: the longest ttl in ms, and how long a restarted server does not vote. @default 30,000 */
  readonly maxTtl?: number | undefined
  /** With several clients: servers vote right after their start. Only for tests, or with `appendfsync always`. @default false */
  readonly trustRestarted?: boolean | undefined
}

/** What the store of some clients is opened with. */
export interface Opening extends StoreSettings {
  /** The database, where it is not the one that the client has selected. */
  readonly db?: number | undefined
  /** Share of the ttl that is subtracted for clock drift. */
  readonly drift?: number | undefined
}

interface Entry {
  readonly clients: readonly RedisClient[]
  readonly settings: string
  readonly shared: SharedLocks
}

/** Objects of the old libraries are often made for each request. All of the same clients share their connections. */
const entries = new WeakMap<RedisClient, Entry[]>()

/** The locks of some clients, which close when nobody needs them any more. */
export class SharedLocks {
  readonly locks: Locks
  readonly #forget: () => void
  #users = 0
  #isRetired = false

  constructor(locks: Locks, forget: () => void) {
    this.locks = locks
    this.#forget = forget
  }

  /** Keeps the locks open until `until` settles. */
  async use(until: Promise<unknown>): Promise<void> {
    this.#users += 1
    await until.catch(() => {})
    this.#users -= 1
    this.#closeIfIdle()
  }

  /** The clients are closed. What is held is not released: work may still go on. */
  retire(): void {
    this.#forget()
    this.#isRetired = true
    this.#closeIfIdle()
  }

  #closeIfIdle(): void {
    if (this.#isRetired && this.#users === 0) void this.locks.close()
  }
}

/** The locks of these clients: one is a store of one server, several are a Redlock. Throws `INVALID_ARGUMENT`. */
export function locksOf(clients: readonly RedisClient[], opening: Opening): SharedLocks {
  const [first] = clients
  if (!first) throw new Error('at least one client is needed')
  const settings = JSON.stringify(opening, Object.keys(opening).sort())
  const known = entries.get(first) ?? []
  const isSame = (entry: Entry): boolean =>
    entry.settings === settings &&
    entry.clients.length === clients.length &&
    clients.every((client, index) => client === entry.clients[index])
  const found = known.find(isSame)
  if (found) return found.shared
  const shared = new SharedLocks(createLocks(storeOf(clients, opening)), () => {
    entries.set(
      first,
      (entries.get(first) ?? []).filter(entry => entry.shared !== shared),
    )
  })
  entries.set(first, [...known, { clients: [...clients], settings, shared }])
  return shared
}

function storeOf(clients: readonly RedisClient[], { db, drift, ...settings }: Opening): Store {
  const selected = clients.map(client => withDatabase(client, db))
  const [only] = selected
  if (only && selected.length === 1) return redis(only, { prefix: settings.prefix })
  return redlock(selected, { ...settings, drift })
}

/** A client of ioredis in another database. It never connects: a store opens connections of its own. */
function withDatabase(client: RedisClient, db: number | undefined): RedisClient {
  if (db === undefined || !('call' in client) || (client as { isCluster?: boolean }).isCluster) return client
  const duplicate = client.duplicate as (options: object) => RedisClient
  return duplicate.call(client, { db, lazyConnect: true })
}

import { createLocks, type Locks } from '../../src/index.ts'
import type { Store } from '../../src/store.ts'
import { type RedisClient, redis } from '../../src/stores/redis/index.ts'
import { redlock } from '../../src/stores/redlock/index.ts'
import { Alongside } from './alongside.ts'
import { OldLocks } from './old-locks.ts'

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

/** How locks and those of the old library exclude each other, while processes of both run. */
export interface AlongsideSettings {
  /**
   * With each lease, also hold the lock of the old library, so that processes of both exclude each other. Needs clients of
   * ioredis or iovalkey. @default false: nothing is granted that the old library holds, but it does not see leases
   */
  readonly alongside?: boolean | undefined
}

/** What the store of some clients is opened with. */
export interface Opening extends StoreSettings, AlongsideSettings {
  /** For semaphores: their permits have no lock of the old library that can be held or looked for. */
  readonly isShared?: boolean | undefined
  /** The database, where it is not the one that the client has selected. Needs clients of ioredis or iovalkey. */
  readonly db?: number | undefined
  /** Share of the ttl that is subtracted for clock drift. */
  readonly drift?: number | undefined
}

/** Milliseconds. The default of `maxTtl`. */
const LONGEST_TTL = 30_000

interface Entry {
  readonly clients: readonly RedisClient[]
  readonly settings: string
  readonly shared: SharedLocks
}

type Listen<Event> = (event: Event, listener: () => void) => unknown

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
  const found = known(clients, opening)
  if (found) return found
  const shared = new SharedLocks(createLocks(storeOf(clients, opening)), () => {
    entries.set(
      first,
      (entries.get(first) ?? []).filter(entry => entry.shared !== shared),
    )
  })
  // A client that has ended does not come back by itself.
  for (const client of clients) if ('once' in client) (client.once as Listen<'end'>)('end', () => shared.retire())
  entries.set(first, [...(entries.get(first) ?? []), { clients: [...clients], settings: textOf(opening), shared }])
  return shared
}

/** The same, if they are open. */
export function known(clients: readonly RedisClient[], opening: Opening): SharedLocks | undefined {
  const [first] = clients
  const settings = textOf(opening)
  const isSame = (entry: Entry): boolean =>
    entry.settings === settings &&
    entry.clients.length === clients.length &&
    clients.every((client, index) => client === entry.clients[index])
  return first && entries.get(first)?.find(isSame)?.shared
}

function textOf(opening: Opening): string {
  return JSON.stringify(opening, Object.keys(opening).sort())
}

function storeOf(clients: readonly RedisClient[], opening: Opening): Store {
  const { db, drift, alongside = false, isShared = false, ...settings } = opening
  const selected = clients.map(client => withDatabase(client, db))
  const [only] = selected
  const store =
    only && selected.length === 1 ? redis(only, { prefix: settings.prefix }) : redlock(selected, { ...settings, drift })
  if (isShared) return store
  if (!clients.every(client => OldLocks.supports(client))) {
    if (alongside) throw new Error('{ alongside: true } needs clients of ioredis or iovalkey, as the old library does')
    return store
  }
  const { maxTtl = LONGEST_TTL, trustRestarted = false } = settings
  const old = new OldLocks(selected, trustRestarted ? 0 : maxTtl)
  const made = selected.filter(client => !clients.includes(client)) as readonly unknown[] as readonly {
    disconnect(): void
  }[]
  return new Alongside(store, old, {
    prefix: settings.prefix ?? 'holdfast',
    mode: alongside ? 'hold' : 'look',
    close: () => {
      for (const client of made) client.disconnect()
    },
  })
}

/** A client of ioredis in another database. It connects for locks of the old library: stores open their own connections. */
function withDatabase(client: RedisClient, db: number | undefined): RedisClient {
  if (db === undefined || (client as { isCluster?: boolean }).isCluster) return client
  if (!('call' in client))
    throw new Error(
      `{ db: ${db} } needs clients of ioredis or iovalkey. Select the database in the client, and omit db`,
    )
  const duplicate = client.duplicate as (options: object) => RedisClient & { on: Listen<'error'> }
  const made = duplicate.call(client, { db, lazyConnect: true })
  made.on('error', () => {}) // without a listener, ioredis prints; each request rejects as well
  return made
}

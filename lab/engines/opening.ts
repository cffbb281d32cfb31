import { openStore, type Store } from '../../src/store.ts'
import { redis } from '../../src/stores/redis/index.ts'
import { driver } from '../servers/driver.ts'
import type { Endpoint } from '../servers/port.ts'

/** How a client process opens its store. It is sent to the process, so it is plain data. */
export type Opening =
  /** `env`: what the process must find in its environment. */
  | { readonly url: string; readonly env?: Readonly<Record<string, string>> }
  /** PostgreSQL session advisory locks. The ttl is that of the session. */
  | { readonly advisory: string; readonly ttl: number }
  /** A master behind Sentinel. `proxies` has the address to use instead of each `host:port`. */
  | {
      readonly sentinels: readonly Endpoint[]
      readonly group: string
      readonly proxies: Readonly<Record<string, Endpoint>>
    }

/** Opens the store. Rejects as `connect` does. */
export async function openAt(opening: Opening): Promise<Store> {
  if ('url' in opening) {
    Object.assign(process.env, opening.env)
    return openStore(opening.url)
  }
  if ('advisory' in opening) {
    const { Pool } = driver<typeof import('pg')>('pg')
    const { advisory } = await import('../../src/stores/postgres/index.ts')
    return advisory(new Pool({ connectionString: opening.advisory }), { create: true, ttl: opening.ttl })
  }
  const { Redis } = driver<typeof import('ioredis')>('ioredis')
  const { group, proxies } = opening
  const sentinels = opening.sentinels.map(address => ({ ...address }))
  return redis(new Redis({ sentinels, name: group, natMap: { ...proxies }, lazyConnect: true }))
}

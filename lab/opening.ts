import { openStore, type Store } from '../src/index.ts'
import { redis } from '../src/stores/redis/index.ts'
import { driver } from './servers/driver.ts'

interface Address {
  readonly host: string
  readonly port: number
}

/** How a process of its own opens the store of an engine. It is sent there, so it is plain data. */
export type Opening =
  | { readonly url: string }
  /** PostgreSQL's session advisory locks; the ttl is that of the session. */
  | { readonly advisory: string; readonly ttl: number }
  /** A master behind Sentinel. `ways`: where each node, by its `host:port`, is to be reached instead. */
  | {
      readonly sentinels: readonly Address[]
      readonly group: string
      readonly ways: Readonly<Record<string, Address>>
    }

/** Opens it. Rejects as `connect` does. */
export async function openAt(opening: Opening): Promise<Store> {
  if ('url' in opening) return openStore(opening.url)
  if ('advisory' in opening) {
    const { Pool } = driver<typeof import('pg')>('pg')
    const { advisory } = await import('../src/stores/postgres/index.ts')
    return advisory(new Pool({ connectionString: opening.advisory }), { create: true, ttl: opening.ttl })
  }
  const { Redis } = driver<typeof import('ioredis')>('ioredis')
  const { group, ways } = opening
  const sentinels = opening.sentinels.map(address => ({ ...address }))
  return redis(new Redis({ sentinels, name: group, natMap: { ...ways }, lazyConnect: true }))
}

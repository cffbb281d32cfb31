import { checkDuration } from '../../contract/check.ts'
import type { Store } from '../../contract/store.ts'

/** An option of every store. */
export interface ShortestTtl {
  /**
   * Milliseconds; `createLocks` refuses a shorter ttl over this store. Lower it only for tests: below the default,
   * ordinary delays lose leases. @default `guarantees.shortestTtl` of the store
   */
  readonly shortestTtl?: number | undefined
}

/** Replaces `guarantees.shortestTtl` of a store if the caller gave another one. Throws `INVALID_ARGUMENT`. */
export function withShortestTtl(store: Store, shortestTtl: number | undefined): Store {
  if (shortestTtl === undefined) return store
  checkDuration(shortestTtl, 'shortestTtl')
  return Object.defineProperty(store, 'guarantees', { value: { ...store.guarantees, shortestTtl } })
}

/** The value of the option in a URL. */
export function shortestTtlIn(query: URLSearchParams): number | undefined {
  const text = query.get('shortestTtl')
  return text === null ? undefined : Number(text)
}

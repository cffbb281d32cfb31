import { checkDuration } from '../../contract/check.ts'
import type { Store } from '../../contract/store.ts'

/** The option that every store has. */
export interface MinTtl {
  /**
   * Milliseconds; `createLocks` refuses a shorter ttl over this store. Lower it only for tests: below the default,
   * ordinary delays lose leases. @default `guarantees.minTtl` of the store
   */
  readonly minTtl?: number | undefined
}

/** Replaces `guarantees.minTtl` of a store if the caller gave another value. Throws `INVALID_ARGUMENT`. */
export function withMinTtl(store: Store, minTtl: number | undefined): Store {
  if (minTtl === undefined) return store
  checkDuration(minTtl, 'minTtl')
  return Object.defineProperty(store, 'guarantees', { value: { ...store.guarantees, minTtl } })
}

/** The value of the option in a URL. */
export function minTtlIn(query: URLSearchParams): number | undefined {
  const text = query.get('minTtl')
  return text === null ? undefined : Number(text)
}

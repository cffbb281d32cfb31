import type { Store } from '../../contract/store.ts'
import { type Clock, systemClock } from '../../contract/time.ts'
import { type MinTtl, withMinTtl } from '../url/min-ttl.ts'
import { MemoryStore } from './store.ts'

export interface MemoryOptions extends MinTtl {
  /** @default the clocks of this process */
  readonly clock?: Clock
}

/**
 * A store inside this process, shared by all code that uses the same object. It is also the reference for the other stores.
 */
export function memory(options: MemoryOptions = {}): Store {
  return withMinTtl(new MemoryStore(options.clock ?? systemClock()), options.minTtl)
}

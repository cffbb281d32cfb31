import type { Store } from '../../contract/store.ts'
import { type Clock, systemClock } from '../../contract/time.ts'
import { type ShortestTtl, withShortestTtl } from '../shared/shortest-ttl.ts'
import { MemoryStore } from './store.ts'

export interface MemoryOptions extends ShortestTtl {
  /** @default the clocks of this process */
  readonly clock?: Clock
}

/** A store inside this process, for everything that uses the same object. It is also the reference for other stores. */
export function memory(options: MemoryOptions = {}): Store {
  return withShortestTtl(new MemoryStore(options.clock ?? systemClock()), options.shortestTtl)
}

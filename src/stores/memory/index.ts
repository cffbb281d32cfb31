import type { Store } from '../../contract/store.ts'
import { type Clock, systemClock } from '../../contract/time.ts'
import { type ShortestTtl, withShortestTtl } from '../shared/shortest-ttl.ts'
import { MemoryStore } from './store.ts'

export interface MemoryOptions extends ShortestTtl {
  /** @default the clocks of this process */
  readonly clock?: Clock
}

/** A store inside this process, shared by all who are given it. Also the reference for what every store must do. */
export function memory(options: MemoryOptions = {}): Store {
  return withShortestTtl(new MemoryStore(options.clock ?? systemClock()), options.shortestTtl)
}

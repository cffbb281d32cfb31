import { resolve } from 'node:path'
import { invalid } from '../../contract/check.ts'
import type { Store } from '../../contract/store.ts'
import { type Clock, systemClock } from '../../contract/time.ts'
import { type ShortestTtl, withShortestTtl } from '../shared/shortest-ttl.ts'
import { SqliteStore } from './store.ts'

export interface SqliteOptions extends ShortestTtl {
  /** @default the clocks of this process; all processes must agree on `wall()` */
  readonly clock?: Clock
}

/**
 * A store in one file, for all processes of one machine, over Node's own SQLite. The file is made when it is first
 * used; its folder must exist. A transaction blocks the event loop for as long as the disk takes to sync.
 * @throws LeaseError INVALID_ARGUMENT for a path that is no path; what is wrong with the file is thrown by each use
 */
export function sqlite(path: string, options: SqliteOptions = {}): Store {
  if (typeof path !== 'string' || path === '' || path.includes('\0'))
    throw invalid('sqlite() needs the path of a file, such as /var/lib/app/leases.db')
  if (path === ':memory:') throw invalid('sqlite(":memory:") would share with nobody: use memory(), or give a path')
  return withShortestTtl(new SqliteStore(resolve(path), options.clock ?? systemClock()), options.shortestTtl)
}

import { resolve } from 'node:path'
import { invalid } from '../../contract/check.ts'
import type { Store } from '../../contract/store.ts'
import { type Clock, systemClock } from '../../contract/time.ts'
import { type MinTtl, withMinTtl } from '../url/min-ttl.ts'
import type { SharedFolder } from './path.ts'
import { SqliteStore } from './store.ts'

export interface SqliteOptions extends MinTtl, SharedFolder {
  /** For tests. The `wall()` of all processes must agree. @default the clocks of this process */
  readonly clock?: Clock
}

/**
 * A store in one file for all processes of one machine, over Node's own SQLite. The first use creates the file. Its folder
 * must exist. A transaction blocks the event loop until the disk has synced.
 * @throws LeaseError INVALID_ARGUMENT for an invalid path. A problem with the file is reported by each request.
 */
export function sqlite(path: string, options: SqliteOptions = {}): Store {
  if (typeof path !== 'string' || path === '' || path.includes('\0'))
    throw invalid('sqlite() needs the path of a file, such as /var/lib/app/leases.db')
  if (path === ':memory:')
    throw invalid('sqlite(":memory:") would be shared with no process: use memory(), or give a path')
  if (/^sqlite:/i.test(path))
    throw invalid(`sqlite(${JSON.stringify(path)}) is a URL: use connect(), or give the path alone, without "sqlite:"`)
  const { allowSharedFolder = false, clock = systemClock(), minTtl } = options
  return withMinTtl(new SqliteStore(resolve(path), allowSharedFolder, clock), minTtl)
}

import { invalid } from '../../contract/check.ts'
import type { Store } from '../../contract/store.ts'
import { sqlite } from './index.ts'

/** The store that `sqlite:PATH` names. A relative path starts at the current folder. */
export function openSqlite(url: string): Store {
  if (/^sqlite:\/\/(?!\/)/i.test(url))
    throw invalid(`${JSON.stringify(url)} names a host: write sqlite:PATH, such as sqlite:./leases.db`)
  return sqlite(url.slice('sqlite:'.length))
}

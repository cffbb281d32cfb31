import { invalid } from '../../contract/check.ts'
import type { Store } from '../../contract/store.ts'
import { sqlite } from './index.ts'

/** Opens the store at `sqlite:PATH`. A relative path starts at the current folder. */
export function openSqlite(url: string): Store {
  if (/^sqlite:\/\/(?!\/)/i.test(url))
    throw invalid(`${JSON.stringify(url)} has a host: write sqlite:PATH, such as sqlite:./leases.db`)
  return sqlite(url.slice('sqlite:'.length))
}

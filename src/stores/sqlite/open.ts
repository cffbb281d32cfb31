import { invalid } from '../../contract/check.ts'
import type { Store } from '../../contract/store.ts'
import { sqlite } from './index.ts'

/** Opens the store at `sqlite:PATH`. A relative path starts at the current folder. */
export function openSqlite(url: string): Store {
  if (/^sqlite:\/\/(?!\/)/i.test(url))
    throw invalid(`${JSON.stringify(url)} has a host: write sqlite:PATH, such as sqlite:./leases.db`)
  // This checks only the text after the last slash or backslash: a folder may have any name, and a relative path is made absolute for
  // threads.
  if (/[?#][^/\\]*$/.test(url))
    throw invalid(
      `${JSON.stringify(url)} has a ? or #, but sqlite: has no options in the URL: leave them out, or pass the path to ` +
        'sqlite(path) of holdfast/sqlite, which takes any',
    )
  return sqlite(url.slice('sqlite:'.length))
}

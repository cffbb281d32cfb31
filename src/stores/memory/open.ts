import type { Store } from '../../contract/store.ts'
import { warn } from '../../contract/warnings.ts'
import { memory } from './index.ts'

const spaces = new Map<string, Store>()

/**
 * Opens the store of a URL. All callers that open `memory:` in this process share one store; `memory:other` is another one.
 */
export function openMemory(url: string): Store {
  if (process.env.NODE_ENV === 'production')
    warn(
      'HOLDFAST_MEMORY',
      'memory: excludes nobody but this process, and NODE_ENV is production: use the URL of a server, such as ' +
        'redis://host:6379, or memory() of holdfast/memory if one process is enough',
    )
  const store = spaces.get(url) ?? memory()
  spaces.set(url, store)
  return store
}

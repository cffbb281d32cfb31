import type { Store } from '../../contract/store.ts'
import { memory } from './index.ts'

const spaces = new Map<string, Store>()

/** All callers that open `memory:` in this process share one store; `memory:other` is another. */
export function openMemory(url: string): Store {
  const store = spaces.get(url) ?? memory()
  spaces.set(url, store)
  return store
}

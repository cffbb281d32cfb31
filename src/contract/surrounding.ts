import { AsyncLocalStorage } from 'node:async_hooks'

/** The lease under which work runs. */
export interface Surrounding {
  /** The handle of the lease, or of the set of leases. */
  readonly handle: unknown
  /** The surrounding in which the call was made. */
  readonly outer: Surrounding | undefined
}

// Global, because the ESM and the CommonJS build of this library may both be in use.
const key: unique symbol = Symbol.for('holdfast.surrounding')
const shared = globalThis as { [key]?: AsyncLocalStorage<Surrounding> }

/** Runs `work` under a lease. Without `holdfast/current-lease` there is no storage, and this is a plain call. */
export function surround<Handle, Result>(handle: Handle, work: (handle: Handle) => Result): Result {
  const storage = shared[key]
  return storage ? storage.run({ handle, outer: storage.getStore() }, work, handle) : work(handle)
}

/** Makes the storage, unless it exists: from now on work has a surrounding. */
export function surroundings(): AsyncLocalStorage<Surrounding> {
  shared[key] ??= new AsyncLocalStorage()
  return shared[key]
}

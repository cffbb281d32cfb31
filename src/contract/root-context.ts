import { AsyncLocalStorage } from 'node:async_hooks'

/**
 * Calls `make` in the async context in which this module was loaded. Use it to make connections, and timers that set the
 * next timer. If they were made in the context of a request, they would keep what the request stored there, and be part
 * of its trace, for as long as any lease is held.
 */
export const inRootContext: <Made>(make: () => Made) => Made = AsyncLocalStorage.snapshot()

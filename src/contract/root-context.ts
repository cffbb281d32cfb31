import { AsyncLocalStorage } from 'node:async_hooks'

/**
 * Calls `make` in the async context in which this module was loaded. For connections, and for timers that set the next
 * timer: made in the context of a request, they would keep what the request stored there, and be part of its trace, for as
 * long as any lease is held.
 */
export const inRootContext: <Made>(make: () => Made) => Made = AsyncLocalStorage.snapshot()

import { AsyncLocalStorage } from 'node:async_hooks'

/**
 * Calls `make` in the async context in which this module was loaded: for connections, and timers that lead to the next
 * one. Made in a request's context, they would keep what the request stored there, and count as part of its trace, for as
 * long as any lease is held.
 */
export const inRootContext: <Made>(make: () => Made) => Made = AsyncLocalStorage.snapshot()

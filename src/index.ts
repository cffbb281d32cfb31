export { LeaseError, type LeaseErrorCode, type LeaseErrorOptions } from './errors.ts'
export { type LeaseEvents, subscribe } from './events.ts'
export type { Lease } from './lease.ts'
export {
  type AcquireOptions,
  type CloseOptions,
  createLocks,
  type LeaseOptions,
  type Locks,
  type LocksDefaults,
  type TryOptions,
} from './locks.ts'
export type { NameState } from './record.ts'
export type { Busy, Claim, ClaimKey, Grant, Guarantees, LeaseRecord, Query, Store, Wake } from './store.ts'
export { type MemoryOptions, memory } from './stores/memory.ts'
export type { Clock } from './time.ts'
export { connect, openStore } from './url.ts'

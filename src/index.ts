export { type ConnectOptions, connect } from './connect.ts'
export {
  LeaseError,
  type LeaseErrorClass,
  type LeaseErrorCode,
  type LeaseErrorOf,
} from './contract/errors.ts'
export { subscribe } from './contract/events.ts'
export type { Lease, LeaseEnd, Permit } from './contract/lease.ts'
export type { LeaseEvents, LossReason, SharedKind, TermOutcome } from './contract/lease-events.ts'
export type { NameState } from './contract/record.ts'
export type { LeaseRecord, NodeRecord } from './contract/store.ts'
export type { WarningCode } from './contract/warning-code.ts'
export type { Acquirable } from './core/acquirable.ts'
export type { Advice, Latency } from './core/advice/advice.ts'
export type { Once } from './core/once.ts'
export type {
  AcquireOptions,
  BreakOptions,
  CloseOptions,
  LeaseOptions,
  LocksDefaults,
  OnceOptions,
  PingOptions,
  TryOptions,
} from './core/options.ts'
export type { Tried, Work } from './core/work.ts'
export { createLocks, type Locks } from './create-locks.ts'
export type { RunOptions } from './leadership/campaign.ts'
export type { Election, ElectionHealth, ElectionOptions } from './leadership/election.ts'
export type { LeadOptions } from './leadership/lead.ts'
export type { ObserveOptions } from './leadership/observe.ts'
export type { SafeError } from './leadership/streak.ts'
export { type MigrateOptions, migrate } from './migrate.ts'
export type { LeaseSet } from './sharing/lease-set.ts'
export type { PermitOptions, ReadWrite, SemaphoreOptions } from './sharing/sharing.ts'

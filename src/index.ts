export { connect, openStore } from './connect.ts'
export { LeaseError, type LeaseErrorCode, type LeaseErrorOptions } from './contract/errors.ts'
export { type LeaseEvents, subscribe } from './contract/events.ts'
export type { Lease, LeaseEnd } from './contract/lease.ts'
export type { NameState } from './contract/record.ts'
export type {
  Busy,
  Claim,
  ClaimKey,
  Grant,
  Guarantees,
  LeaseRecord,
  NodeRecord,
  Query,
  Store,
  Wake,
} from './contract/store.ts'
export type { Clock } from './contract/time.ts'
export type { WarningCode } from './contract/warning-code.ts'
export type { Advice, Latency } from './core/advice/advice.ts'
export { createLocks, type Locks } from './core/locks.ts'
export type { AcquireOptions, CloseOptions, LeaseOptions, LocksDefaults, TryOptions } from './core/options.ts'
export type { CampaignOptions } from './recipes/campaign.ts'
export type { Election, ElectionHealth, ElectionOptions } from './recipes/election.ts'
export type { LeadOptions } from './recipes/lead.ts'
export type { Leadership } from './recipes/leadership.ts'
export type { ObserveOptions } from './recipes/observe.ts'
export { type MemoryOptions, memory } from './stores/memory/index.ts'

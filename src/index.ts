export type { Advice, Latency } from './advice/advice.ts'
export { LeaseError, type LeaseErrorCode, type LeaseErrorOptions } from './errors.ts'
export { type LeaseEvents, subscribe } from './events.ts'
export type { Lease, LeaseEnd } from './lease.ts'
export { createLocks, type Locks } from './locks.ts'
export type { AcquireOptions, CloseOptions, LeaseOptions, LocksDefaults, TryOptions } from './options.ts'
export type { CampaignOptions } from './recipes/campaign.ts'
export type { Election, ElectionHealth, ElectionOptions } from './recipes/election.ts'
export type { LeadOptions } from './recipes/lead.ts'
export type { Leadership } from './recipes/leadership.ts'
export type { ObserveOptions } from './recipes/observe.ts'
export type { NameState } from './record.ts'
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
} from './store.ts'
export { type MemoryOptions, memory } from './stores/memory.ts'
export type { Clock } from './time.ts'
export { connect, openStore } from './url.ts'
export type { WarningCode } from './warnings.ts'

// What authors of stores, wrappers and harnesses need, and users do not.
export { openStore } from './connect.ts'
export type { LeaseErrorOptions } from './contract/errors.ts'
export type {
  BreakParameters,
  Busy,
  Claim,
  ClaimKey,
  Grant,
  Guarantees,
  LeaseRecord,
  NodeRecord,
  Pacing,
  Query,
  Store,
  Takeover,
  Wake,
} from './contract/store.ts'
export type { Clock } from './contract/time.ts'

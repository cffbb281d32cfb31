// What authors of stores, wrappers and harnesses need, and users do not.
export { openStore } from './connect.ts'
export type { LeaseErrorOptions } from './contract/errors.ts'
export {
  type BreakParameters,
  type Busy,
  type Claim,
  type ClaimKey,
  type Grant,
  type Guarantees,
  LARGEST_LIMIT,
  type LeaseRecord,
  MOST_UNITS,
  type NodeRecord,
  type Pacing,
  type Query,
  type Store,
  type Takeover,
  type Wake,
} from './contract/store.ts'
export { type Clock, LONGEST_REQUEST, LONGEST_ROUND_TRIP, margin, requestLimit, TURN } from './contract/time.ts'

import type { Claim, LeaseRecord } from '../../src/contract/store.ts'

export interface Holder {
  claim: Claim
  readonly token: bigint
  expires: number
}

interface Place {
  readonly claim: Claim
  readonly lapses: number
}

/** The state of a name. */
export interface Name {
  holder: Holder | undefined
  freeSince: number
  queue: Place[]
  /** The last holder, for the flaw that revives it. */
  last: Holder | undefined
}

export function recordOf({ claim: { name, owner, note }, token, expires }: Holder): LeaseRecord {
  return { name, state: 'held', owner, note, token, remaining: expires - performance.now() }
}

import type { Claim, Grant } from '../contract/store.ts'
import type { Acquired } from './acquire.ts'
import type { Pulse } from './advice/pulse.ts'
import type { HeldLease } from './held-lease.ts'

/** Renewals of one lease that are made elsewhere: by a thread that goes on while this one is blocked. */
export interface Renewals {
  /** They begin, for this lease. Called once, when it is made. */
  begin(lease: HeldLease): void
  /**
   * What they did since the last look, cheaply and at once: the milliseconds that remain of the lease, `-Infinity` if
   * the store said that it is gone, `undefined` if there is nothing new.
   */
  look(): number | undefined
  /** One more, now, with the ttl of `claim`; as `Store.renew`. What it did is there to look at when it resolves. */
  renew(claim: Claim, signal: AbortSignal): Promise<Grant | undefined>
  /** The note of the lease was changed. */
  annotated(note: string): void
  /** Ends them. Resolves once none is under way, in bounded time: may one still arrive? Never rejects. Idempotent. */
  stop(): Promise<boolean>
}

export interface RenewalOptions {
  /** Milliseconds without a sign of life of this thread after which they cease. @default the ttl */
  readonly livenessLimit: number | undefined
  readonly maxHold: number | undefined
}

/** Makes renewals for the leases of one `Locks`. */
export interface Renewer {
  /** Resolves when it can; at once after the first time. Rejects with a `LeaseError`. */
  ready(): Promise<void>
  renewals(claim: Claim, acquired: Acquired, options: RenewalOptions): Renewals
  /** Ends it with all renewals. */
  close(): Promise<void>
}

/** Opens a renewer, which tells `pulse` what it sees; called when the first lease asks for it. */
export type OpenRenewer = (pulse: Pulse) => Promise<Renewer>

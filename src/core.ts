import { LoopDelay } from './advice/loop-delay.ts'
import type { RenewalStatistics } from './advice/renewal-statistics.ts'
import type { Heartbeat } from './heartbeat.ts'
import type { HeldLease } from './held-lease.ts'
import type { List } from './list.ts'
import type { Renewals } from './renewals.ts'
import type { Store } from './store.ts'
import { type Clock, systemClock } from './time.ts'

/** Where time and chance come from; a simulation brings its own. */
export interface Environment {
  readonly clock: Clock
  /** From 0 up to 1, as `Math.random`. */
  readonly random: () => number
  /** Of the thread, where it is real. */
  readonly loopDelay?: LoopDelay
}

/** The environment of this process. */
export function systemEnvironment(): Environment {
  return { clock: systemClock(), random: Math.random, loopDelay: new LoopDelay() }
}

/** What the leases and waits of one `Locks` share. */
export interface Core extends Environment {
  readonly store: Store
  readonly heartbeat: Heartbeat
  /** Hears of each renewal that this thread makes, if given. */
  readonly pulse?: Pick<RenewalStatistics, 'answered' | 'failed'>
  /** Those that are held here. */
  readonly leases: List<HeldLease>
  /** Called once by each lease, when it is lost or its release begins. */
  readonly onEnd: (lease: HeldLease) => void
  /** A withdrawal that never rejects; `close()` waits for it. */
  readonly inBackground: (withdrawal: Promise<unknown>) => void
}

/** How one of them is held. */
export interface HoldOptions {
  readonly heartbeat: boolean
  /** Renews it instead of the heartbeat and the store, if given. */
  readonly renewals?: Renewals | undefined
  /** Does the process end although the lease is held? */
  readonly background: boolean
  readonly maxHold: number | undefined
}

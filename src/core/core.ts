import { type Environment, systemEnvironment } from '../contract/environment.ts'
import type { List } from '../contract/list.ts'
import type { Store } from '../contract/store.ts'
import { LoopDelay } from './advice/loop-delay.ts'
import type { Pulse } from './advice/pulse.ts'
import type { Heartbeat } from './heartbeat.ts'
import type { HeldLease } from './held-lease.ts'
import type { Renewals } from './renewals.ts'

/** The environment of a `Locks`: `loopDelay` measures the event loop, and is left out in simulations. */
export interface CoreEnvironment extends Environment {
  readonly loopDelay?: LoopDelay
}

export function coreEnvironment(): CoreEnvironment {
  return { ...systemEnvironment(), loopDelay: new LoopDelay() }
}

/** What the leases and waits of one `Locks` share. */
export interface Core extends CoreEnvironment {
  readonly store: Store
  readonly heartbeat: Heartbeat
  /** Hears of each renewal that this thread makes, if given. */
  readonly pulse?: Pick<Pulse, 'answered' | 'failed'>
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

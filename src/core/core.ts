import { type Environment, systemEnvironment } from '../contract/environment.ts'
import type { Lease } from '../contract/lease.ts'
import type { List } from '../contract/list.ts'
import type { Store } from '../contract/store.ts'
import { LoopDelay } from './advice/loop-delay.ts'
import type { RenewalStatistics } from './advice/renewal-statistics.ts'
import type { Beats } from './heartbeat.ts'
import type { Waiters } from './waiters.ts'

/** The environment of a `Locks`: `loopDelay` measures the event loop, and is left out in simulations. */
export interface CoreEnvironment extends Environment {
  readonly loopDelay?: LoopDelay
}

export function coreEnvironment(): CoreEnvironment {
  return { ...systemEnvironment(), loopDelay: new LoopDelay() }
}

/** A lease in the list of those that these locks hold. */
export interface ListedLease {
  readonly name: string
  readonly owner: string
  readonly token: bigint
  /** The limit of the claim. `undefined`: it holds alone. */
  readonly limit: number | undefined
  /** The clock's time before the granted request was sent. */
  readonly heldSince: number
  readonly remaining: number
  readonly handle: Lease
}

/** What a held lease needs. A decorator of the store and the heartbeat decides where the lease is renewed. */
export interface LeaseCore extends CoreEnvironment {
  readonly store: Pick<Store, 'kind' | 'guarantees' | 'renew' | 'annotate' | 'release' | 'onLoss'>
  readonly heartbeat: Beats
  /** Records renewals. */
  readonly statistics: Pick<RenewalStatistics, 'answered' | 'failed'>
  /** The leases that are held here. */
  readonly leases: List<ListedLease>
  /** Called once by each lease, when it is lost or its release begins. */
  readonly onEnd: () => void
  /** Takes a withdrawal that never rejects; `close()` waits for it. */
  readonly inBackground: (withdrawal: Promise<unknown>) => void
}

/** What the leases and waits of one `Locks` share. */
export interface Core extends LeaseCore {
  readonly store: Store
  /** Finds the lease on a name that locks over this store hold. */
  readonly heldLease: (name: string) => ListedLease | undefined
  /** Called by an acquire whenever it begins to wait. */
  readonly onWait: () => void
  /** Counts the calls that wait. */
  readonly waiters: Waiters
}

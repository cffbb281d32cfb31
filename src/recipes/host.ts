import type { Environment } from '../contract/environment.ts'
import type { Lease } from '../contract/lease.ts'
import type { Leasing } from '../core/leasing.ts'
import type { AcquireOptions } from '../core/options.ts'
import type { Work } from '../core/work.ts'

/** What a recipe needs: the locks, their environment, and when they are closed. */
export interface Host extends Environment {
  readonly inspect: Leasing['inspect']
  /** As `Leasing.using`. Calls `onBusy` whenever the store answers that the name is busy. */
  using(name: string, options: AcquireOptions, onBusy: () => void, work: Work<Lease, unknown>): Promise<unknown>
  /** Aborts with `CLOSED` when `close` begins. */
  readonly closing: AbortSignal
}

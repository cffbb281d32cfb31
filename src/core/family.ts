import type { List } from '../contract/list.ts'
import { within } from '../contract/request.ts'
import type { Store } from '../contract/store.ts'
import { LONGEST_REQUEST } from '../contract/time.ts'
import { RenewalStatistics } from './advice/renewal-statistics.ts'
import type { CoreEnvironment } from './core.ts'
import { Heartbeat } from './heartbeat.ts'
import type { HeldLease } from './held-lease.ts'
import type { OpenRenewer, Renewer } from './renewer.ts'
import { Waiters } from './waiters.ts'

/** What all `Locks` over one store share. */
export class Family {
  readonly store: Store
  readonly environment: CoreEnvironment
  readonly heartbeat: Heartbeat
  readonly statistics: RenewalStatistics
  readonly waiters: Waiters = new Waiters()
  /** The leases of each member that is not closed. */
  readonly #members = new Set<List<HeldLease>>()
  readonly #openRenewer: OpenRenewer | undefined
  #renewer: Promise<Renewer> | undefined

  /** `openRenewer` starts the thread of `heartbeat: 'thread'`. Without it that option is refused. */
  constructor(store: Store, environment: CoreEnvironment, openRenewer?: OpenRenewer) {
    const { clock, random, loopDelay } = environment
    this.store = store
    this.environment = environment
    this.heartbeat = new Heartbeat(clock, random)
    this.statistics = new RenewalStatistics(clock, store.guarantees?.minTtl ?? 0, loopDelay)
    this.#openRenewer = openRenewer
  }

  get hasThread(): boolean {
    return this.#openRenewer !== undefined
  }

  get isHolding(): boolean {
    for (const { size } of this.#members) if (size > 0) return true
    return false
  }

  /** The leases that the members hold. */
  leases(): HeldLease[] {
    return [...this.#members].flatMap(leases => leases.values())
  }

  join(leases: List<HeldLease>): void {
    this.#members.add(leases)
  }

  /** Starts the heartbeat thread. Only the first lease that needs it waits for it. */
  async startRenewer(): Promise<Renewer | undefined> {
    this.#renewer ??= this.#openRenewer?.(this.statistics)
    const renewer = await this.#renewer
    await renewer?.ready()
    return renewer
  }

  /** Removes a member. The last one closes the store. Never rejects. */
  async leave(leases: List<HeldLease>): Promise<void> {
    this.#members.delete(leases)
    if (this.#members.size > 0) return
    await this.#renewer?.then(renewer => renewer.close()).catch(() => {}) // the thread may have failed to start
    // If the store cannot be closed, nobody can do anything about it.
    const dispose = async (): Promise<void> => this.store[Symbol.asyncDispose]()
    await within(
      this.environment.clock,
      LONGEST_REQUEST,
      dispose().catch(() => {}),
      () => {},
    )
  }
}

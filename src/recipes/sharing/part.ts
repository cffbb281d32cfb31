import type { Emitters } from '../../contract/events.ts'
import { List } from '../../contract/list.ts'
import { randomId } from '../../contract/random-id.ts'
import { Cancel } from '../../contract/request.ts'
import type { Busy, Claim } from '../../contract/store.ts'
import { type Acquired, Acquisition } from '../../core/acquisition.ts'
import type { Core, ListedLease } from '../../core/core.ts'
import type { HeldLease } from '../../core/held-lease.ts'
import { holdWith, type Renewer, type RenewerOptions } from '../../core/renewer.ts'
import { withdrawIfCancelled } from '../../core/withdraw.ts'

/** Two permits in one process are not a deadlock, so waits for a part are not searched for leases of these locks. */
const NONE: List<ListedLease> = new List()

/** What the parts of one call have in common. */
export interface PartsOf {
  readonly core: Core
  readonly events: Emitters
  readonly renewer: Renewer | undefined
  readonly owner: string
  readonly note: string
  /** Milliseconds for which a part that waits retries a store that does not answer. The ttl of a gate is too short for that. */
  readonly patience: number
}

/** One claim of a call, on the gate or on a slot. It is asked for once, then held or withdrawn. */
export class Part {
  readonly name: string
  /** Set once it is held. */
  lease: HeldLease | undefined
  /** Acquire requests until the grant. */
  requests = 0
  readonly #core: Core
  readonly #of: PartsOf
  readonly #ttl: number
  readonly #hold: RenewerOptions
  readonly #cancel = new Cancel()
  readonly #withdrawals: Promise<unknown>[] = []
  #acquisition: Acquisition | undefined
  #asking: Promise<HeldLease | undefined> | undefined

  constructor(of: PartsOf, name: string, ttl: number, hold: RenewerOptions) {
    const inBackground = (withdrawal: Promise<unknown>): void => {
      of.core.inBackground(withdrawal)
      this.#withdrawals.push(withdrawal)
    }
    this.name = name
    this.#of = of
    this.#ttl = ttl
    this.#hold = hold
    this.#core = { ...of.core, events: of.events, inBackground }
  }

  /** The last busy answer. */
  get busy(): Busy | undefined {
    return this.#acquisition?.busy
  }

  /** Asks once if `limit` is 0, else waits in the queue. `undefined`: busy for all of `limit`. Rejects as `Acquisition`. */
  ask(limit: number, patience: number = this.#of.patience): Promise<HeldLease | undefined> {
    const { owner, note } = this.#of
    const claim: Claim = { name: this.name, id: randomId(), owner, ttl: this.#ttl, note, queue: limit > 0 }
    const acquisition = new Acquisition({ ...this.#core, leases: NONE }, claim, limit, this.#cancel, patience)
    this.#acquisition = acquisition
    this.#asking = acquisition.run().then(acquired => acquired && this.#accept(claim, acquired))
    return this.#asking
  }

  /** Ends the wait. A part that is held stays held until it is withdrawn. */
  cancel(reason: unknown): void {
    this.#cancel.cancel(reason)
  }

  /** Resolves when neither a lease nor a claim of it is left, or after at most 5 s. Never rejects. */
  async withdraw(reason: unknown): Promise<void> {
    this.cancel(reason)
    await this.#asking?.catch(() => {})
    void this.lease?.release()
    await Promise.all(this.#withdrawals)
  }

  #accept(claim: Claim, acquired: Acquired): HeldLease {
    const core = this.#core
    withdrawIfCancelled(core, claim, acquired.unsettled, this.#cancel)
    const lease = holdWith(this.#of.renewer, core, claim, acquired, this.#hold)
    void lease.ended // the program has no handle of it that it could lose
    this.requests = acquired.requests
    this.lease = lease
    return lease
  }
}

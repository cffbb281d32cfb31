import type { Identified } from '../contract/identity.ts'
import type { Lease, Permit } from '../contract/lease.ts'
import { warn } from '../contract/warnings.ts'
import { Handle, verb } from './handle.ts'
import type { Held } from './held.ts'

/** The lease that a handle stands for. */
export interface HandledLease
  extends Held,
    Pick<Lease, 'name' | 'token' | 'owner' | 'ttl' | 'annotate' | 'stopRenewing'> {
  /** The limit of a permit. `undefined`: it is a lease and not a permit. */
  readonly limit: number | undefined
  readonly slots: readonly number[]
}

/**
 * The lease as its user sees it. While the core renews the lease it refers to the handle weakly. So it notices when the
 * program has lost every reference to the lease.
 */
export class LeaseHandle extends Handle implements Lease, Identified {
  readonly name: string
  readonly token: bigint
  readonly owner: string
  /** Set by the core. */
  ttl: number
  readonly #held: HandledLease

  constructor(held: HandledLease) {
    super(held)
    this.name = held.name
    this.token = held.token
    this.owner = held.owner
    this.ttl = held.ttl
    this.#held = held
  }

  get 'holdfast:held'(): HandledLease {
    return this.#held
  }

  get annotate(): (note: string) => Promise<void> {
    return verb(this, (handle, note) => handle.#held.annotate(note))
  }

  get stopRenewing(): () => void {
    return verb(this, handle => handle.#held.stopRenewing())
  }

  toJSON(): Record<string, unknown> {
    const { name, owner, ttl, remaining } = this
    return { name, token: this.token.toString(), owner, ttl, remaining: Math.round(remaining) }
  }
}

class PermitHandle extends LeaseHandle implements Permit {
  readonly limit: number
  readonly slots: readonly number[]

  constructor(held: HandledLease) {
    super(held)
    this.limit = held.limit ?? 1
    this.slots = held.slots
  }

  get slot(): number {
    return this.slots[0] ?? 0
  }

  override toJSON(): Record<string, unknown> {
    const { limit, slot, slots } = this
    return { ...super.toJSON(), limit, slot, slots }
  }
}

const dropped = new FinalizationRegistry<WeakRef<HandledLease>>(held => {
  const lease = held.deref()
  if (!lease) return // the lease was collected with its timers, such as those of a virtual clock
  const { name } = lease
  const message =
    `the lease ${JSON.stringify(name)} is still renewed, but the program has no reference to it: call release() when ` +
    'the work is done, or use locks.using or await using'
  warn('HOLDFAST_LEASE_DROPPED', message)
})

/** The core's reference to a handle. It is strong at first, because watching a lease is too expensive for short leases. */
export class HandleRef {
  readonly #held: HandledLease
  #mayBeDropped: boolean
  #strong: LeaseHandle | undefined
  #weak: WeakRef<LeaseHandle> | undefined

  constructor(held: HandledLease, mayBeDropped: boolean) {
    this.#held = held
    this.#mayBeDropped = mayBeDropped
  }

  get(): LeaseHandle {
    const handle = this.#strong ?? this.#weak?.deref()
    if (handle) return handle
    this.#strong = this.#held.limit === undefined ? new LeaseHandle(this.#held) : new PermitHandle(this.#held)
    return this.#strong
  }

  /** Makes the loss of the handle a warning from now on. Called when the lease is renewed. */
  watch(): void {
    if (!this.#strong || !this.#mayBeDropped) return
    this.#weak = new WeakRef(this.#strong)
    dropped.register(this.#strong, new WeakRef(this.#held), this)
    this.#strong = undefined
  }

  /** Turns the warning off. */
  keep(): void {
    this.#mayBeDropped = false
    if (!this.#weak) return
    dropped.unregister(this)
    this.#strong = this.#weak.deref()
    this.#weak = undefined
  }
}

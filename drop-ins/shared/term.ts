import type { Lease, LeaseEnd, LeaseSet } from '../../src/index.ts'
import { LeaseError } from '../../src/index.ts'
import type { Guarantees } from '../../src/store.ts'

/** Milliseconds: the longest delay of a timer, and the longest ttl. */
const LONGEST_TTL = 2 ** 31 - 1

/** How long a lock was asked for, and how a store can grant that. */
export interface Term {
  /** Milliseconds of each grant. */
  readonly ttl: number
  /** Is the duration longer than one grant? Then the lease is renewed until it is over. */
  readonly isRenewed: boolean
}

/** A duration that the store does not accept is raised to its shortest ttl, or granted in parts. */
export function termOf(duration: number, guarantees: Guarantees): Term {
  const { minTtl, maxUnattended = LONGEST_TTL } = guarantees
  const longest = Math.min(maxUnattended, LONGEST_TTL)
  return { ttl: Math.ceil(Math.min(Math.max(duration, minTtl), longest)), isRenewed: duration > longest }
}

/** One or several leases that last for a duration, which may be longer than any ttl. */
export class Holding {
  readonly lease: Lease | LeaseSet
  /** Does the core renew it until it is released? */
  readonly isOpenEnded: boolean
  readonly #guarantees: Guarantees
  #timer: NodeJS.Timeout | undefined
  #until = 0
  /** Milliseconds of a renewal, at most. */
  #part = Number.POSITIVE_INFINITY

  constructor(lease: Lease | LeaseSet, guarantees: Guarantees, isOpenEnded: boolean) {
    this.lease = lease
    this.isOpenEnded = isOpenEnded
    this.#guarantees = guarantees
    void lease.ended.then(() => this.#stop())
  }

  /** The first lease, in the order of the call. */
  get first(): Lease {
    return this.#leases[0] as Lease
  }

  get #leases(): readonly Lease[] {
    return 'leases' in this.lease ? this.lease.leases : [this.lease]
  }

  /** Milliseconds since the request was sent that was granted just now, for this duration. `drift`: what the store subtracts. */
  age(duration: number, drift = 0.01): number {
    return termOf(duration, this.#guarantees).ttl * (1 - drift) - 2 - this.lease.remaining
  }

  /** The lease was granted for this duration, or its first part. */
  last(duration: number): void {
    this.#until = this.#endOf(duration)
    // It is let run out, so nobody is warned when the process ends before it does.
    if (this.#until === 0) for (const lease of this.#leases) lease.stopRenewing()
    this.#renewIn()
  }

  /** From now on it lasts for this duration. Rejects as `Lease.extend`; then it still lasts to its old end. */
  async extend(duration: number): Promise<void> {
    this.#stop()
    try {
      await this.lease.extend(termOf(duration, this.#guarantees).ttl)
      if (!this.isOpenEnded) this.#until = this.#endOf(duration)
    } finally {
      this.#renewIn()
    }
  }

  /** The core renews it no more. */
  stopRenewing(): void {
    this.#until = 0
    this.#stop()
    for (const lease of this.#leases) lease.stopRenewing()
  }

  /** After `stopRenewing`: renews it again, for this duration each time. The core cannot. */
  keep(duration: number): void {
    this.#part = duration
    this.#until = Number.POSITIVE_INFINITY
    this.#renewIn()
  }

  release(): Promise<LeaseEnd> {
    this.#stop()
    return this.lease.release()
  }

  #stop(): void {
    clearTimeout(this.#timer)
    this.#timer = undefined
  }

  /** The end of a lease that was granted for this duration or its first part; 0 if it needs no renewal. */
  #endOf(duration: number): number {
    return termOf(duration, this.#guarantees).isRenewed ? performance.now() + duration : 0
  }

  /** Renews after `delay` ms, unless what is granted lasts to the end. The last renewal ends with the duration. */
  #renewIn(delay: number = this.lease.remaining / 3): void {
    this.#stop()
    const { remaining } = this.lease
    if (remaining === 0 || this.#until - performance.now() <= remaining) return
    const timer = setTimeout(() => void this.#renew(timer), delay)
    this.#timer = timer.unref()
  }

  async #renew(timer: NodeJS.Timeout): Promise<void> {
    const rest = this.#until - performance.now()
    const { ttl } = termOf(Math.min(rest, this.#part), this.#guarantees)
    const renewing = this.lease.extend(ttl).then(
      () => undefined,
      error => error,
    )
    const error = await renewing
    if (timer !== this.#timer) return // released or extended meanwhile
    if (!error && !termOf(rest, this.#guarantees).isRenewed) this.#until = 0
    if (!error) this.#renewIn()
    else if (LeaseError.is(error) && error.retryable) this.#renewIn(ttl / 20)
  }
}

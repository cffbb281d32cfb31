import type { LeaseError } from '../contract/errors.ts'
import type { LeaseEnd } from '../contract/lease.ts'
import { Held } from '../core/held.ts'
import type { HeldLease, LeaseGroup } from '../core/held-lease.ts'

/**
 * Leases that end together, from the first that is acquired. It must not refer to their handles: see `LeaseSetHandle`.
 */
export class HeldSet extends Held implements LeaseGroup {
  readonly #leases: HeldLease[] = []

  get remaining(): number {
    return Math.min(...this.#leases.map(({ remaining }) => remaining))
  }

  assertHeld(): void {
    const lost = this.check()
    if (lost) throw lost
    for (const lease of this.#leases) lease.assertHeld()
  }

  async extend(ttl?: number): Promise<number> {
    const results = await Promise.allSettled(this.#leases.map(lease => lease.extend(ttl)))
    this.assertHeld() // a loss ends the others, whose extensions then fail
    for (const result of results) if (result.status === 'rejected') throw result.reason
    return this.remaining
  }

  /** Adds a lease that has just been acquired. If the set is over already, the lease is released. */
  add(lease: HeldLease): void {
    this.#leases.push(lease)
    lease.group = this
    this.check()
    const { signal } = lease
    if (signal.aborted) this.abort(signal.reason) // close() may have aborted it
    if (this.loss || this.releasing) void lease.release()
  }

  /** Called when all are held: sets their `maxHold`, which counts from now. */
  limit(maxHold: number | undefined): void {
    for (const lease of this.#leases) lease.limitHold(maxHold)
  }

  /** Releases the lease on one name before the set is complete. */
  releaseOne(name: string): void {
    const index = this.#leases.findIndex(lease => lease.name === name)
    const [lease] = this.#leases.splice(index, 1)
    if (!lease) return
    lease.group = undefined
    void lease.release()
  }

  override abort(reason: unknown): void {
    if (this.aborting.isAborted) return
    super.abort(reason)
    for (const lease of this.#leases) lease.abort(reason)
  }

  lose(error: LeaseError): void {
    if (this.loss) return
    this.loss = error
    this.abort(error)
    this.settle('lost')
    // After maxHold the work may still run: they end by their ttl, or by release(), as one lease does.
    if (error.code !== 'MAX_HOLD') void this.release()
  }

  release(): Promise<LeaseEnd> {
    this.check() // first: a loss releases
    this.releasing ??= this.#endWith(this.#leases.map(lease => lease.release()))
    return this.releasing
  }

  protected onAwaited(): void {
    void this.#endWith(this.#leases.map(({ ended }) => ended))
  }

  /** The set ends with the last of its leases. */
  async #endWith(leases: readonly Promise<LeaseEnd>[]): Promise<LeaseEnd> {
    const ends = await Promise.all(leases)
    return this.settle(ends.includes('unknown') ? 'unknown' : 'released') // a loss has settled it before
  }

  check(): LeaseError | undefined {
    for (const lease of this.#leases) {
      const lost = lease.check()
      if (lost) this.lose(lost) // its own listeners run before it notifies this set
    }
    return this.loss
  }
}

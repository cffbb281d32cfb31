import { randomId } from '../../contract/random-id.ts'
import { type Clock, requestLimit } from '../../contract/time.ts'
import { leaseOf } from './keys.ts'
import { type Leases, orMissing } from './leases.ts'

/** An etcd lease for the positions of several waiters. */
interface PositionLease {
  readonly id: string
  readonly granted: Promise<unknown>
  isGranted: boolean
  /** The time when the lease was last renewed. */
  beatAt: number
  beating: Promise<boolean> | undefined
}

/**
 * The etcd leases of the positions that the waiters of this process have in one queue, by their ttl in seconds. They last
 * at most 5 s, so that dead waiters do not block others longer. One keepalive keeps many positions.
 */
export class PositionLeases {
  readonly #leases: Leases
  readonly #clock: Clock
  readonly #bySeconds = new Map<number, PositionLease>()

  constructor(leases: Leases, clock: Clock) {
    this.#leases = leases
    this.#clock = clock
  }

  has(id: string | undefined): boolean {
    return [...this.#bySeconds.values()].some(lease => lease.id === id)
  }

  /** Resolves to a lease that has most of its time left. */
  async take(seconds: number): Promise<string> {
    const known = this.#bySeconds.get(seconds)
    if (known) {
      await known.granted
      if (this.#clock.now() < known.beatAt + (seconds * 1_000) / 3 || (await this.#keep(seconds, known)))
        return known.id
    }
    let lease = this.#bySeconds.get(seconds)
    if (!lease) {
      const id = leaseOf(randomId(), seconds)
      const granted = this.#leases.grant(id, seconds * 1_000, requestLimit(seconds * 1_000))
      const made = { id, granted, isGranted: false, beatAt: this.#clock.now(), beating: undefined }
      lease = made
      this.#bySeconds.set(seconds, lease)
      granted.then(
        () => {
          made.isGranted = true
        },
        () => this.forget(id),
      )
    }
    await lease.granted
    return lease.id
  }

  /** Renews the leases. Leases that have ended are forgotten. Rejects if one request was not answered. */
  async keep(): Promise<void> {
    await Promise.all([...this.#bySeconds].map(([seconds, lease]) => this.#keep(seconds, lease)))
  }

  /** The lease no longer exists at the server. */
  forget(id: string): void {
    for (const [seconds, lease] of this.#bySeconds) if (lease.id === id) this.#bySeconds.delete(seconds)
  }

  /** Revokes the leases, which ends the positions. If that fails, they expire. */
  end(): void {
    for (const { id } of this.#bySeconds.values())
      this.#leases
        .revoke(id)
        .catch(orMissing)
        .catch(() => {})
    this.#bySeconds.clear()
  }

  #keep(seconds: number, lease: PositionLease): Promise<boolean> {
    lease.beating ??= this.#renew(seconds, lease).finally(() => {
      lease.beating = undefined
    })
    return lease.beating
  }

  async #renew(seconds: number, lease: PositionLease): Promise<boolean> {
    const now = this.#clock.now()
    if (!lease.isGranted) await lease.granted
    const { ttl } = await this.#leases.keepAlive(lease.id, requestLimit(seconds * 1_000))
    if (ttl > 0) lease.beatAt = now
    else this.forget(lease.id)
    return ttl > 0
  }
}

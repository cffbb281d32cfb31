import { randomId } from '../../contract/random-id.ts'
import type { Clock } from '../../contract/time.ts'

/**
 * The answer to a keepalive: the ttl in ms, or 0 if the lease does not exist, and the term of the leader that renewed it.
 */
export interface KeepAlive {
  readonly ttl: number
  readonly term: number
}

/**
 * An etcd lease that serves one claim after another. Granting and revoking a lease cost one write each. A claim that finds
 * its name free saves both. A claim that leaves the lease writes the key `left`. A claim that takes the lease compares that
 * key, so a stale request of an earlier claim has no effect.
 */
export interface PooledLease {
  readonly lease: string
  /** The mod revision of its key `left`. */
  readonly mark: string
  /** The last answer to a grant or keepalive, and the time when its request was sent. */
  readonly beat: KeepAlive
  readonly beatAt: number
}

/** A pooled lease of this store while a claim uses it. It is returned to the pool, or revoked, once. */
export interface Loan {
  pooled: PooledLease
  /** The create revision of the key that the claim holds with it. */
  revision: string | undefined
  isOver: boolean
}

/** The largest number of leases of one ttl in the pool. Others are revoked. */
const MOST = 1_000

/** The leases that no claim of this store uses, by their ttl in seconds. */
export class LeasePool {
  readonly #clock: Clock
  readonly #bySeconds = new Map<number, PooledLease[]>()

  constructor(clock: Clock) {
    this.#clock = clock
  }

  /** Takes the lease that was kept alive last, if it has enough time left for another keepalive. */
  take(seconds: number): PooledLease | undefined {
    const leases = this.#bySeconds.get(seconds)
    const newest = leases?.pop()
    if (!newest || this.#isFresh(newest)) return newest
    this.#bySeconds.delete(seconds) // the others are older, and expire
    return undefined
  }

  /** Returns the lease that `take` would take. */
  newest(seconds: number): PooledLease | undefined {
    const newest = this.#bySeconds.get(seconds)?.at(-1)
    return newest && this.#isFresh(newest) ? newest : undefined
  }

  /** A lease was kept alive. If it has ended or was taken meanwhile, it is no longer in the pool. */
  renew(seconds: number, pooled: PooledLease, { beat, beatAt }: Pick<PooledLease, 'beat' | 'beatAt'>): void {
    const leases = this.#bySeconds.get(seconds) ?? []
    const at = leases.indexOf(pooled)
    if (at >= 0) leases.splice(at, 1, ...(beat.ttl > 0 ? [{ ...pooled, beat, beatAt }] : []))
  }

  /** Adds a lease to the pool. Returns false if it is not worth keeping. */
  give(seconds: number, pooled: PooledLease): boolean {
    let leases = this.#bySeconds.get(seconds)
    if ((leases && leases.length >= MOST) || !this.#isFresh(pooled)) return false
    if (!leases) {
      // The leases of ttls that are no longer used have expired.
      for (const [old, pooled] of this.#bySeconds)
        if (!pooled.some(each => this.#isFresh(each))) this.#bySeconds.delete(old)
      leases = []
      this.#bySeconds.set(seconds, leases)
    }
    leases.push(pooled)
    return true
  }

  clear(): PooledLease[] {
    const all = [...this.#bySeconds.values()].flat()
    this.#bySeconds.clear()
    return all
  }

  #isFresh({ beat, beatAt }: PooledLease): boolean {
    return this.#clock.now() < beatAt + beat.ttl / 2
  }
}

/** Returns an even number. The leases that belong to one claim have odd ids. */
export function newPooledId(): string {
  return (((BigInt(`0x${randomId().slice(0, 16)}`) >> 2n) + 1n) << 1n).toString()
}

/** Is this a pooled lease? Other claims may use it later, so only its own store may revoke it. */
export function isPooled(lease: string | undefined): lease is string {
  return lease !== undefined && BigInt(lease) % 2n === 0n
}

import { randomId } from '../../contract/random-id.ts'
import { type Clock, LONGEST_REQUEST, requestLimit } from '../../contract/time.ts'
import { isLeaseMissing, isLeaseThere, isRepetition } from './failure.ts'
import type { Gateway } from './gateway.ts'
import { leaseOf, secondsOf } from './keys.ts'
import { type KeepAlive, LeasePool, type Loan, newPooledId } from './lease-pool.ts'
import type { KeyValue, LeaseAnswer } from './messages.ts'
import type { Requests } from './requests.ts'

/** The largest number of claims that are remembered. The release of a forgotten claim costs one more request. */
const MOST_KNOWN = 100_000

/** The number of pooled leases that `end` revokes at most, and the milliseconds for which it waits. */
const [MOST_ENDED, SOON] = [100, 200]

/** Milliseconds during which claims share one answer about the remaining time of a lease. */
const FRESH = 200

/** The lease that a claim uses, or is about to use. */
export interface Known {
  readonly lease: string
  /** The ttl of the lease, as requested. */
  readonly seconds: number
  /** The loan of a pooled lease of this store. */
  readonly loan?: Loan
  /** May an unanswered request still move the key to another lease? */
  readonly mayMove?: boolean
}

/** The etcd leases of the claims of this store. A lease serves one claim at a time. */
export class Leases {
  readonly #gateway: Gateway
  readonly #requests: Requests
  readonly #clock: Clock
  readonly #known = new Map<string, Known>()
  readonly #pool: LeasePool
  #tombstones: { readonly lease: Promise<string>; readonly until: number } | undefined
  #asked: { readonly lease: string; readonly at: number; readonly answer: Promise<number> } | undefined

  constructor(gateway: Gateway, requests: Requests, clock: Clock) {
    this.#gateway = gateway
    this.#requests = requests
    this.#clock = clock
    this.#pool = new LeasePool(clock)
  }

  know(id: string, known: Known): void {
    this.#known.set(id, known)
    if (this.#known.size > MOST_KNOWN) for (const oldest of this.#known.keys()) return void this.#known.delete(oldest)
  }

  known(id: string): Known | undefined {
    return this.#known.get(id)
  }

  forget(id: string): void {
    this.#known.delete(id)
  }

  /** Lends a lease from the pool. With `isNew`, or if the pool is empty, it grants a new lease. */
  async lend(ttl: number, isNew: boolean): Promise<Loan> {
    const seconds = secondsOf(ttl)
    let pooled = isNew ? undefined : this.#pool.take(seconds)
    if (!pooled) {
      const [lease, beatAt] = [newPooledId(), this.#clock.now()]
      pooled = { lease, mark: '0', beat: await this.grant(lease, ttl, requestLimit(ttl)), beatAt }
    }
    return { pooled, revision: undefined, isOver: false }
  }

  /** Returns a lease to the pool. The claim has no key on it, or none since `mark`. */
  giveBack(id: string, seconds: number, loan: Loan, mark: string = loan.pooled.mark): void {
    if (!this.#end(id, loan)) return
    const pooled = { ...loan.pooled, mark }
    if (!this.#pool.give(seconds, pooled)) this.#revokeSoon(pooled.lease)
  }

  /** Revokes a lease instead of returning it, unless its loan is over. */
  evict(id: string, loan: Loan | undefined = this.#known.get(id)?.loan): void {
    if (loan && this.#end(id, loan)) this.#revokeSoon(loan.pooled.lease)
  }

  /** Revokes pooled leases while that is quick. The others expire. */
  async end(): Promise<void> {
    const last = this.#pool.clear().slice(-MOST_ENDED)
    const ending = Promise.allSettled(last.map(({ lease }) => this.revoke(lease)))
    let timer: NodeJS.Timeout | undefined
    const soon = new Promise<void>(resolve => {
      timer = setTimeout(resolve, SOON)
    })
    await Promise.race([ending, soon])
    clearTimeout(timer)
  }

  /** Keeps a pooled lease ready for a waiter, which then acquires the name with one request when it is woken. */
  async reserve(ttl: number): Promise<void> {
    const seconds = secondsOf(ttl)
    const pooled = this.#pool.newest(seconds)
    const beatAt = this.#clock.now()
    if (pooled) {
      const beat = await this.keepAlive(pooled.lease, requestLimit(ttl))
      this.#pool.renew(seconds, pooled, { beat, beatAt })
    } else {
      const lease = newPooledId()
      const beat = await this.grant(lease, ttl, requestLimit(ttl))
      if (!this.#pool.give(seconds, { lease, mark: '0', beat, beatAt })) this.#revokeSoon(lease)
    }
  }

  keepAlive(lease: string, limit: number): Promise<KeepAlive> {
    return this.#requests.keepAlive(lease, limit)
  }

  /** Grants the lease, or renews it if it exists. */
  async grant(lease: string, ttl: number, limit: number): Promise<KeepAlive> {
    for (;;) {
      try {
        const body = { ID: lease, TTL: secondsOf(ttl) }
        const { TTL } = await this.#gateway.ask<LeaseAnswer>('lease/grant', body, limit)
        // A majority knows the grant, so any leader keeps the lease for at least its ttl from now on.
        return { ttl: Number(TTL) * 1_000, term: Number.POSITIVE_INFINITY }
      } catch (error) {
        if (!isLeaseThere(error)) throw error
        const beat = await this.#requests.keepAlive(lease, limit)
        if (beat.ttl > 0) return beat // otherwise it ended just now
      }
    }
  }

  /** Revokes the lease, which deletes its keys. Resolves to the revision of that deletion. */
  async revoke(lease: string): Promise<bigint> {
    const { header } = await this.#gateway.ask<LeaseAnswer>('lease/revoke', { ID: lease })
    return BigInt(header.revision)
  }

  /**
   * Revokes the lease of a key. Resolves to a revision above the key's and below that of the next key there, or to
   * `undefined` if the lease had ended before.
   */
  async endOf({ lease = '0', create_revision }: KeyValue): Promise<bigint | undefined> {
    try {
      return await this.revoke(lease)
    } catch (error) {
      if (!isLeaseMissing(error)) throw error
      // An earlier copy of the request has revoked the lease, and its answer was lost. That took a revision.
      return isRepetition(error) ? BigInt(create_revision) + 1n : undefined
    }
  }

  /** Milliseconds that remain of a lease, rounded up to a second. 0: the lease has ended. */
  remaining(lease: string): Promise<number> {
    const now = this.#clock.now()
    if (this.#asked?.lease !== lease || now > this.#asked.at + FRESH)
      this.#asked = { lease, at: now, answer: this.#remaining(lease) }
    return this.#asked.answer
  }

  /**
   * The lease for tombstones. A tombstone lasts as long as a request may be in flight. The lease is used for 5 s, and the
   * request that puts a tombstone may take 5 s.
   */
  async tombstones(): Promise<string> {
    const now = this.#clock.now()
    if (!this.#tombstones || now > this.#tombstones.until) {
      const ttl = 3 * LONGEST_REQUEST
      const id = leaseOf(randomId(), secondsOf(ttl))
      const lease = this.grant(id, ttl, LONGEST_REQUEST).then(() => id)
      lease.catch(() => {
        this.#tombstones = undefined
      })
      this.#tombstones = { lease, until: now + LONGEST_REQUEST }
    }
    return this.#tombstones.lease
  }

  #end(id: string, loan: Loan): boolean {
    if (loan.isOver) return false
    loan.isOver = true
    if (this.#known.get(id)?.loan === loan) this.forget(id)
    return true
  }

  #revokeSoon(lease: string): void {
    this.revoke(lease).catch(() => {})
  }

  async #remaining(lease: string): Promise<number> {
    const { TTL = '0', grantedTTL = '0' } = await this.#gateway.ask<{ TTL?: string; grantedTTL?: string }>(
      'lease/timetolive',
      { ID: lease },
    )
    return Number(TTL) < 0 ? 0 : Math.min(Number(TTL) + 1, Number(grantedTTL)) * 1_000
  }
}

/** Ignores the error that the lease does not exist. */
export function orMissing(error: unknown): undefined {
  if (!isLeaseMissing(error)) throw error
}

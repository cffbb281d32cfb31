import { randomUUID } from 'node:crypto'
import { type Clock, LONGEST_REQUEST, requestLimit } from '../../contract/time.ts'
import { isLeaseMissing, isLeaseThere, isRepetition } from './failure.ts'
import type { Gateway } from './gateway.ts'
import { leaseOf, secondsOf } from './keys.ts'
import type { KeyValue, LeaseAnswer } from './messages.ts'
import type { Beat, Shared } from './shared.ts'
import { newSpare, Spares, type Tenancy } from './spares.ts'

/** Those that are forgotten above this cost their release a request more. */
const MOST_KNOWN = 100_000

/** At the end of the store so many are revoked, and waited for so many milliseconds. */
const [MOST_ENDED, SOON] = [100, 200]

/** Milliseconds: a crowd that meets one holder asks once for what remains of its lease. */
const FRESH = 200

/** The lease on which a claim is, or is about to be. */
export interface Known {
  readonly lease: string
  /** Of the ttl that was asked for. */
  readonly seconds: number
  /** If it is a spare one of this store. */
  readonly tenancy?: Tenancy
}

/** The leases of etcd, each of one claim at a time. */
export class Leases {
  readonly #gateway: Gateway
  readonly #shared: Shared
  readonly #clock: Clock
  readonly #known = new Map<string, Known>()
  readonly #spares: Spares
  #tombstones: { readonly lease: Promise<string>; readonly until: number } | undefined
  #asked: { readonly lease: string; readonly at: number; readonly answer: Promise<number> } | undefined

  constructor(gateway: Gateway, shared: Shared, clock: Clock) {
    this.#gateway = gateway
    this.#shared = shared
    this.#clock = clock
    this.#spares = new Spares(clock)
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

  /** A lease that no claim is on, for this one; with `isNew`, one that none was on. */
  async let(id: string, ttl: number, isNew: boolean): Promise<Tenancy> {
    const seconds = secondsOf(ttl)
    let spare = isNew ? undefined : this.#spares.take(seconds)
    if (!spare) {
      const [lease, beatAt] = [newSpare(), this.#clock.now()]
      spare = { lease, mark: '0', beat: await this.grant(lease, ttl, requestLimit(ttl)), beatAt }
    }
    const tenancy = { spare, revision: undefined, isOver: false }
    this.know(id, { lease: spare.lease, seconds, tenancy })
    return tenancy
  }

  /** Nothing of the claim is on it, or not any more since `mark`. */
  giveBack(id: string, seconds: number, tenancy: Tenancy, mark: string = tenancy.spare.mark): void {
    if (!this.#end(id, tenancy)) return
    const spare = { ...tenancy.spare, mark }
    if (!this.#spares.give(seconds, spare)) this.#revokeSoon(spare.lease)
  }

  /** Revokes it, if nobody has before. */
  evict(id: string, tenancy: Tenancy): void {
    if (this.#end(id, tenancy)) this.#revokeSoon(tenancy.spare.lease)
  }

  /** Ends those that no claim is on, as far as that can be done soon; the others end by themselves. */
  async end(): Promise<void> {
    const spares = this.#spares.clear().slice(-MOST_ENDED)
    const ending = Promise.allSettled(spares.map(({ lease }) => this.revoke(lease)))
    let timer: NodeJS.Timeout | undefined
    const soon = new Promise<void>(resolve => {
      timer = setTimeout(resolve, SOON)
    })
    await Promise.race([ending, soon])
    clearTimeout(timer)
  }

  /** Makes the lease, or renews it if it is there. */
  async grant(lease: string, ttl: number, limit: number): Promise<Beat> {
    for (;;) {
      try {
        const body = { ID: lease, TTL: secondsOf(ttl) }
        const { TTL } = await this.#gateway.ask<LeaseAnswer>('lease/grant', body, limit)
        // A majority has it, so that whoever leads gives it at least its ttl from now on.
        return { ttl: Number(TTL) * 1_000, term: Number.POSITIVE_INFINITY }
      } catch (error) {
        if (!isLeaseThere(error)) throw error
        const beat = await this.#shared.keepAlive(lease, limit)
        if (beat.ttl > 0) return beat // else it ended just now
      }
    }
  }

  /** Ends the lease, and with it what is on it; resolves to the revision of that. */
  async revoke(lease: string): Promise<bigint> {
    const { header } = await this.#gateway.ask<LeaseAnswer>('lease/revoke', { ID: lease })
    return BigInt(header.revision)
  }

  /**
   * Ends the lease that a key is on; resolves to a revision between the key's and that of the next one there, or to
   * `undefined` if the lease had ended before.
   */
  async endOf({ lease = '0', create_revision }: KeyValue): Promise<bigint | undefined> {
    try {
      return await this.revoke(lease)
    } catch (error) {
      if (!isLeaseMissing(error)) throw error
      // A copy whose answer was lost has ended it, which took a revision.
      return isRepetition(error) ? BigInt(create_revision) + 1n : undefined
    }
  }

  /** Revokes a lease with nothing on it; if that fails it ends by itself. */
  drop(id: string, lease: string): void {
    this.forget(id)
    this.#revokeSoon(lease)
  }

  /** Milliseconds that remain of a lease, rounded up to a second; 0 of one that ended. */
  remaining(lease: string): Promise<number> {
    const now = this.#clock.now()
    if (this.#asked?.lease !== lease || now > this.#asked.at + FRESH)
      this.#asked = { lease, at: now, answer: this.#remaining(lease) }
    return this.#asked.answer
  }

  /** A lease for what must be remembered as long as a request may be under way. */
  async tombstones(): Promise<string> {
    const now = this.#clock.now()
    if (!this.#tombstones || now > this.#tombstones.until) {
      const ttl = 2 * LONGEST_REQUEST
      const id = leaseOf(randomUUID(), secondsOf(ttl))
      const lease = this.grant(id, ttl, LONGEST_REQUEST).then(() => id)
      lease.catch(() => {
        this.#tombstones = undefined
      })
      this.#tombstones = { lease, until: now + ttl - LONGEST_REQUEST }
    }
    return this.#tombstones.lease
  }

  #end(id: string, tenancy: Tenancy): boolean {
    if (tenancy.isOver) return false
    tenancy.isOver = true
    if (this.#known.get(id)?.tenancy === tenancy) this.forget(id)
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

/** In place of an error that says that the lease is gone. */
export function orMissing(error: unknown): undefined {
  if (!isLeaseMissing(error)) throw error
}

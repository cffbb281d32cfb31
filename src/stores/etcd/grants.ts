import type { Claim, ClaimKey, Grant } from '../../contract/store.ts'
import { type Clock, LONGEST_REQUEST, requestLimit } from '../../contract/time.ts'
import { BatchedTransactions } from './batched-transactions.ts'
import { isFull, isLeaseMissing } from './failure.ts'
import { FreeNames } from './free-names.ts'
import type { Gateway } from './gateway.ts'
import { type Keys, secondsOf } from './keys.ts'
import type { PooledLease } from './lease-pool.ts'
import { type Leases, orMissing } from './leases.ts'
import { granted, type Requests, termOf, vanished } from './requests.ts'
import {
  isOwn,
  leave,
  leftAt,
  madeAt,
  type Outcome,
  outcomeOf,
  type Situation,
  situationOf,
  take,
  takeIfUnused,
} from './txn.ts'
import type { Granted, View } from './view.ts'

/**
 * A lease that was kept alive within this share of its ttl needs no keepalive, because the renewals of the claim begin soon
 * enough.
 */
const FRESH = 1 / 10

type Lent = Pick<PooledLease, 'lease' | 'mark'>

/**
 * Grants names with pooled leases. The acquire and the release of an unused name each cost one write, which many claims
 * share.
 */
export class Grants {
  readonly #gateway: Gateway
  readonly #keys: Keys
  readonly #requests: Requests
  readonly #leases: Leases
  readonly #clock: Clock
  readonly #freeNames: FreeNames
  readonly #releases: BatchedTransactions
  /** Names that a queueing claim of this process is acquiring. */
  readonly #taken = new Set<string>()

  constructor(gateway: Gateway, keys: Keys, requests: Requests, leases: Leases, clock: Clock) {
    this.#gateway = gateway
    this.#keys = keys
    this.#requests = requests
    this.#leases = leases
    this.#clock = clock
    this.#freeNames = new FreeNames(gateway)
    this.#releases = new BatchedTransactions(gateway)
  }

  /**
   * Acquires a name without holders and waiters. Resolves to `undefined` if the name has some, if another claim is
   * acquiring it, or if the claim was withdrawn. For a claim that may share the name, resolves to what was read instead. If
   * an earlier copy of the request may have been processed, the loan is not over, and the caller settles that.
   */
  async takeUnused(claim: Claim, signal: AbortSignal): Promise<Grant | Situation | undefined> {
    const { name, limit = 1, units = 1 } = claim
    const slots = Array.from({ length: units }, (_, slot) => slot)
    const taking = (): Promise<Grant | Situation | undefined> =>
      this.#take(
        claim,
        slots,
        lent => this.#freeNames.take(takeIfUnused(this.#keys, claim, lent), claim, signal),
        signal,
      )
    // Of many simultaneous claims of limit 1, only the first needs a lease.
    if (!claim.queue || limit > 1) return taking()
    if (this.#taken.has(name)) return undefined
    this.#taken.add(name)
    try {
      return await taking()
    } finally {
      this.#taken.delete(name)
    }
  }

  /**
   * Acquires what was decided for a `view`, from the queue if the claim has a `place` there. Resolves like `takeUnused`.
   */
  take(
    claim: Claim,
    decision: Granted,
    view: Pick<View, 'revision' | 'holders'>,
    place: string | undefined,
    signal: AbortSignal,
  ): Promise<Grant | Situation | undefined> {
    const attempt = async (lent: Lent): Promise<Outcome> => {
      const txn = take(this.#keys, claim, lent, decision, view, place)
      return outcomeOf(await this.#gateway.txn(txn, requestLimit(claim.ttl)))
    }
    return this.#take(claim, decision.slots, attempt, signal)
  }

  /**
   * Releases what the claim holds with a pooled lease. Resolves to false if that is unknown here, or if the lease must be
   * revoked.
   */
  async leave({ name, id }: ClaimKey, signal: AbortSignal): Promise<boolean> {
    const { lease = '', seconds = 0, loan } = this.#leases.known(id) ?? {}
    if (!loan || loan.isOver || loan.revision === undefined) return false
    const key = this.#keys.held(name, id)
    const exit = leave(this.#keys, madeAt(key, loan.revision), { key, lease, left: id })
    const outcome = await this.#releases.put(exit, LONGEST_REQUEST, signal).catch(error => {
      if (isFull(error)) return 'full'
      return orMissing(error)
    })
    if (outcome === 'full') return false // the caller deletes the key alone
    const mark = outcome && leftAt(outcome, id)
    if (mark !== undefined) this.#leases.giveBack(id, seconds, loan, mark)
    else this.#leases.evict(id, loan)
    return outcome !== undefined && mark !== undefined && isOwn(outcome)
  }

  async #take(
    claim: Claim,
    slots: readonly number[],
    attempt: (lent: Lent) => Promise<Outcome | undefined>,
    signal: AbortSignal,
  ): Promise<Grant | Situation | undefined> {
    const { id, ttl } = claim
    const seconds = secondsOf(ttl)
    const asked = this.#clock.now()
    for (let isNew = false; ; isNew = true) {
      const loan = await this.#leases.lend(id, ttl, isNew)
      const { pooled } = loan
      if (signal.aborted) this.#leases.giveBack(id, seconds, loan)
      signal.throwIfAborted()
      const beating = this.#keepAlive(pooled, requestLimit(ttl))
      beating.catch(() => {}) // it is awaited below
      try {
        const outcome = await attempt(pooled)
        if (outcome?.succeeded) {
          if (loan.isOver) throw vanished() // a release of the claim has ended it meanwhile
          const { revision } = outcome.header
          loan.revision = revision
          const { beat, beatAt } = await beating
          loan.pooled = { ...pooled, beat, beatAt }
          const age = Math.max(asked - beatAt, 0)
          return granted(revision, { ...beat, ttl: Math.floor(beat.ttl - age) }, termOf(outcome.header), slots)
        }
        if (outcome?.isRepeated) return undefined
        const isAsItWas = !outcome || (outcome.found?.mod_revision ?? '0') === pooled.mark
        if (isAsItWas) this.#leases.giveBack(id, seconds, loan)
        else this.#leases.evict(id, loan) // the lease ended, or another store removed its key
        if (isAsItWas || isNew) return outcome && outcome.responses.length > 1 ? situationOf(outcome) : undefined
      } catch (error) {
        // The lease has expired, for example while the cluster hung. No release of the claim revoked it.
        if (isNew || loan.isOver || !isLeaseMissing(error)) throw error
        loan.isOver = true
      }
    }
  }

  async #keepAlive(pooled: PooledLease, limit: number): Promise<Pick<PooledLease, 'beat' | 'beatAt'>> {
    const now = this.#clock.now()
    if (now < pooled.beatAt + pooled.beat.ttl * FRESH) return pooled
    return { beat: await this.#requests.keepAlive(pooled.lease, limit), beatAt: now }
  }
}

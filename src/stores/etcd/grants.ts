import type { Claim, ClaimKey, Grant } from '../../contract/store.ts'
import { LONGEST_REQUEST, requestLimit } from '../../contract/time.ts'
import { isFull, isLeaseMissing } from './failure.ts'
import { secondsOf } from './keys.ts'
import type { PooledLease } from './lease-pool.ts'
import { orMissing } from './leases.ts'
import type { Parts } from './parts.ts'
import { granted, termOf, vanished } from './requests.ts'
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
  readonly #parts: Parts
  /**
   * The claims of this process that are acquiring a name, by name. One transaction cannot serve two claims of a name: they
   * would get the same revision, and so the same token.
   */
  readonly #taking = new Map<string, Promise<unknown>>()

  constructor(parts: Parts) {
    this.#parts = parts
  }

  /**
   * Acquires a name without holders and waiters. Resolves to `undefined` if the name has some, if another claim is
   * acquiring it, or if the claim was withdrawn. For a claim that may share the name, resolves to what was read instead. If
   * an earlier copy of the request may have been processed, the loan is not over, and the caller settles that.
   */
  async takeUnused(claim: Claim, signal: AbortSignal): Promise<Grant | Situation | undefined> {
    const { keys, requests } = this.#parts
    const { name, ttl, units = 1 } = claim
    for (let other = this.#taking.get(name); other; other = this.#taking.get(name))
      if (claim.queue || (await settles(other))) return undefined
    signal.throwIfAborted()
    const slots = Array.from({ length: units }, (_, slot) => slot)
    const attempt = (lent: Lent): Promise<Outcome> =>
      requests.take(takeIfUnused(keys, claim, lent), requestLimit(ttl), signal)
    const taking = this.#take(claim, slots, attempt, signal)
    this.#taking.set(name, taking)
    try {
      return await taking
    } finally {
      this.#taking.delete(name)
    }
  }

  /**
   * Acquires what was decided for a `view`, from the queue if the claim has a `position` there. Resolves like `takeUnused`.
   */
  take(
    claim: Claim,
    decision: Granted,
    view: Pick<View, 'revision' | 'holders'>,
    position: string | undefined,
    signal: AbortSignal,
  ): Promise<Grant | Situation | undefined> {
    const { gateway, keys } = this.#parts
    const attempt = async (lent: Lent): Promise<Outcome> => {
      const txn = take(keys, claim, lent, decision, view, position)
      return outcomeOf(await gateway.txn(txn, requestLimit(claim.ttl)))
    }
    return this.#take(claim, decision.slots, attempt, signal)
  }

  /**
   * Releases what the claim holds with a pooled lease. Resolves to false if that is unknown here, or if the lease must be
   * revoked.
   */
  async leave({ name, id }: ClaimKey, signal: AbortSignal): Promise<boolean> {
    const { keys, leases, requests } = this.#parts
    const { lease = '', seconds = 0, loan } = leases.known(id) ?? {}
    if (!loan || loan.isOver || loan.revision === undefined) return false
    const key = keys.held(name, id)
    const exit = leave(keys, madeAt(key, loan.revision), { key, lease, left: id })
    const outcome = await requests.leave(exit, LONGEST_REQUEST, signal).catch(error => {
      if (isFull(error)) return 'full'
      return orMissing(error)
    })
    if (outcome === 'full') return false // the caller deletes the key alone
    const mark = outcome && leftAt(outcome, id)
    if (mark !== undefined) leases.giveBack(id, seconds, loan, mark)
    else leases.evict(id, loan)
    return outcome !== undefined && mark !== undefined && isOwn(outcome)
  }

  async #take(
    claim: Claim,
    slots: readonly number[],
    attempt: (lent: Lent) => Promise<Outcome>,
    signal: AbortSignal,
  ): Promise<Grant | Situation | undefined> {
    const { clock, leases } = this.#parts
    const { id, ttl } = claim
    const seconds = secondsOf(ttl)
    const asked = clock.now()
    for (let isNew = false; ; isNew = true) {
      const loan = await leases.lend(ttl, isNew)
      const { pooled } = loan
      if (signal.aborted) leases.giveBack(id, seconds, loan)
      signal.throwIfAborted()
      leases.know(id, { lease: pooled.lease, seconds, loan }) // not before: a later attempt may use another lease
      const beating = this.#keepAlive(pooled, requestLimit(ttl))
      beating.catch(() => {}) // it is awaited below
      try {
        const outcome = await attempt(pooled)
        if (outcome.succeeded) {
          if (loan.isOver) throw vanished() // a release of the claim has ended it meanwhile
          const { revision } = outcome.header
          loan.revision = revision
          const { beat, beatAt } = await beating
          loan.pooled = { ...pooled, beat, beatAt }
          const age = Math.max(asked - beatAt, 0)
          return granted(revision, { ...beat, ttl: Math.floor(beat.ttl - age) }, termOf(outcome.header), slots)
        }
        if (outcome.isRepeated) return undefined
        const isAsItWas = (outcome.found?.mod_revision ?? '0') === pooled.mark
        if (isAsItWas) leases.giveBack(id, seconds, loan)
        else leases.evict(id, loan) // the lease ended, or another store removed its key
        if (isAsItWas || isNew) return outcome.responses.length > 1 ? situationOf(outcome) : undefined
      } catch (error) {
        // The lease has expired, for example while the cluster hung. No release of the claim revoked it.
        if (isNew || loan.isOver || !isLeaseMissing(error)) throw error
        loan.isOver = true
      }
    }
  }

  async #keepAlive(pooled: PooledLease, limit: number): Promise<Pick<PooledLease, 'beat' | 'beatAt'>> {
    const { clock, leases } = this.#parts
    const now = clock.now()
    if (now < pooled.beatAt + pooled.beat.ttl * FRESH) return pooled
    return { beat: await leases.keepAlive(pooled.lease, limit), beatAt: now }
  }
}

function settles(promise: Promise<unknown>): Promise<boolean> {
  return promise.then(
    () => true,
    () => false,
  )
}

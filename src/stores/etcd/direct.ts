import type { Claim, ClaimKey, Grant } from '../../store.ts'
import { type Clock, LONGEST_REQUEST, requestLimit } from '../../time.ts'
import { Entries } from './entries.ts'
import { isFull, isLeaseMissing } from './failure.ts'
import type { Gateway } from './gateway.ts'
import { JoinedTxns } from './joined.ts'
import { type Keys, secondsOf } from './keys.ts'
import { type Leases, orMissing } from './leases.ts'
import { granted, type Shared, termOf } from './shared.ts'
import type { Spare } from './spares.ts'
import { leave, leftAt, madeAt } from './txn.ts'

/** A lease that was kept alive for its last tenth needs no keepalive now: the renewals of the claim begin soon enough. */
const FRESH = 1 / 10

/** Claims that find their names free: they are on spare leases, and share the two writes that are left to them. */
export class Direct {
  readonly #keys: Keys
  readonly #shared: Shared
  readonly #leases: Leases
  readonly #clock: Clock
  readonly #entries: Entries
  readonly #exits: JoinedTxns

  constructor(gateway: Gateway, keys: Keys, shared: Shared, leases: Leases, clock: Clock) {
    this.#keys = keys
    this.#shared = shared
    this.#leases = leases
    this.#clock = clock
    this.#entries = new Entries(gateway, keys)
    this.#exits = new JoinedTxns(gateway)
  }

  /** `undefined`: the name is not free, or others wait for it, or the claim was withdrawn. */
  async take(claim: Claim, signal: AbortSignal): Promise<Grant | undefined> {
    const { id, ttl } = claim
    const seconds = secondsOf(ttl)
    const asked = this.#clock.now()
    for (let isNew = false; ; isNew = true) {
      const spare = await this.#leases.spare(id, ttl, isNew)
      if (signal.aborted) this.#leases.giveBack(id, seconds, spare)
      signal.throwIfAborted()
      const beating = this.#keepAlive(spare, requestLimit(ttl))
      beating.catch(() => {}) // told below
      try {
        const outcome = await this.#entries.take(claim, spare, signal)
        if (outcome?.succeeded) {
          const { revision } = outcome.header
          this.#leases.know(id, { lease: spare.lease, seconds, spare, revision })
          const { beat, beatAt } = await beating
          this.#leases.know(id, { lease: spare.lease, seconds, spare: { ...spare, beat, beatAt }, revision })
          const age = Math.max(asked - beatAt, 0)
          return granted(revision, { ...beat, ttl: Math.floor(beat.ttl - age) }, termOf(outcome.header))
        }
        const isAsItWas = !outcome || (outcome.found?.mod_revision ?? '0') === spare.mark
        if (isAsItWas) this.#leases.giveBack(id, seconds, spare)
        else this.#leases.drop(id, spare.lease) // it has ended, or another store has taken from it what was on it
        if (isAsItWas || isNew) return undefined
      } catch (error) {
        // It had ended, as in a cluster that stood still, and not by a release of the claim.
        const mayTryAgain = !isNew && isLeaseMissing(error) && this.#leases.known(id)?.spare === spare
        if (!mayTryAgain) throw error
      }
    }
  }

  /** Ends what the claim holds by `take`. False if that is not known any more, or the lease must go. */
  async leave({ name, id }: ClaimKey, signal: AbortSignal): Promise<boolean> {
    const { lease = '', seconds = 0, spare, revision } = this.#leases.known(id) ?? {}
    if (!spare || revision === undefined) return false
    const key = this.#keys.held(name)
    const exit = leave(this.#keys, madeAt(key, revision), { key, lease, left: id })
    const outcome = await this.#exits.put(exit, LONGEST_REQUEST, signal).catch(error => {
      if (isFull(error)) return 'full'
      return orMissing(error)
    })
    if (outcome === 'full') {
      this.#leases.know(id, { lease, seconds, spare })
      return false
    }
    const mark = outcome && leftAt(outcome, id)
    if (mark !== undefined) this.#leases.giveBack(id, seconds, { ...spare, mark })
    else this.#leases.drop(id, lease)
    return mark !== undefined
  }

  async #keepAlive(spare: Spare, limit: number): Promise<Pick<Spare, 'beat' | 'beatAt'>> {
    const now = this.#clock.now()
    if (now < spare.beatAt + spare.beat.ttl * FRESH) return spare
    return { beat: await this.#shared.keepAlive(spare.lease, limit), beatAt: now }
  }
}

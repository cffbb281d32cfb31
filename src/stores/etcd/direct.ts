import type { Claim, ClaimKey, Grant } from '../../contract/store.ts'
import { type Clock, LONGEST_REQUEST, requestLimit } from '../../contract/time.ts'
import { Entries } from './entries.ts'
import { isFull, isLeaseMissing } from './failure.ts'
import type { Gateway } from './gateway.ts'
import { JoinedTxns } from './joined.ts'
import { type Keys, secondsOf } from './keys.ts'
import { type Leases, orMissing } from './leases.ts'
import { granted, type Shared, termOf, vanished } from './shared.ts'
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
  /** Names that claims which would wait for them are taking. */
  readonly #taken = new Set<string>()

  constructor(gateway: Gateway, keys: Keys, shared: Shared, leases: Leases, clock: Clock) {
    this.#keys = keys
    this.#shared = shared
    this.#leases = leases
    this.#clock = clock
    this.#entries = new Entries(gateway, keys)
    this.#exits = new JoinedTxns(gateway)
  }

  /** `undefined`: the name is not free, or others wait for it or take it just now, or the claim was withdrawn. */
  async take(claim: Claim, signal: AbortSignal): Promise<Grant | undefined> {
    const { name, queue } = claim
    // A crowd that comes at once makes no lease each for the one name that only the first can have.
    if (!queue) return this.#take(claim, signal)
    if (this.#taken.has(name)) return undefined
    this.#taken.add(name)
    try {
      return await this.#take(claim, signal)
    } finally {
      this.#taken.delete(name)
    }
  }

  /** Ends what the claim holds by `take`. False if that is not known any more, or the lease must go. */
  async leave({ name, id }: ClaimKey, signal: AbortSignal): Promise<boolean> {
    const { lease = '', seconds = 0, tenancy } = this.#leases.known(id) ?? {}
    if (!tenancy || tenancy.isOver || tenancy.revision === undefined) return false
    const key = this.#keys.held(name)
    const exit = leave(this.#keys, madeAt(key, tenancy.revision), { key, lease, left: id })
    const outcome = await this.#exits.put(exit, LONGEST_REQUEST, signal).catch(error => {
      if (isFull(error)) return 'full'
      return orMissing(error)
    })
    if (outcome === 'full') {
      tenancy.revision = undefined
      return false
    }
    const mark = outcome && leftAt(outcome, id)
    if (mark !== undefined) this.#leases.giveBack(id, seconds, tenancy, mark)
    else this.#leases.evict(id, tenancy)
    return mark !== undefined
  }

  async #take(claim: Claim, signal: AbortSignal): Promise<Grant | undefined> {
    const { id, ttl } = claim
    const seconds = secondsOf(ttl)
    const asked = this.#clock.now()
    for (let isNew = false; ; isNew = true) {
      const tenancy = await this.#leases.let(id, ttl, isNew)
      const { spare } = tenancy
      if (signal.aborted) this.#leases.giveBack(id, seconds, tenancy)
      signal.throwIfAborted()
      const beating = this.#keepAlive(spare, requestLimit(ttl))
      beating.catch(() => {}) // told below
      try {
        const outcome = await this.#entries.take(claim, spare, signal)
        if (outcome?.succeeded) {
          if (tenancy.isOver) throw vanished() // by a release of the claim meanwhile
          const { revision } = outcome.header
          tenancy.revision = revision
          const { beat, beatAt } = await beating
          tenancy.spare = { ...spare, beat, beatAt }
          const age = Math.max(asked - beatAt, 0)
          return granted(revision, { ...beat, ttl: Math.floor(beat.ttl - age) }, termOf(outcome.header))
        }
        const isAsItWas = !outcome || (outcome.found?.mod_revision ?? '0') === spare.mark
        if (isAsItWas) this.#leases.giveBack(id, seconds, tenancy)
        else this.#leases.evict(id, tenancy) // it has ended, or another store has taken from it what was on it
        if (isAsItWas || isNew) return undefined
      } catch (error) {
        // It had ended, as in a cluster that stood still, and not by a release of the claim.
        if (isNew || tenancy.isOver || !isLeaseMissing(error)) throw error
        tenancy.isOver = true
      }
    }
  }

  async #keepAlive(spare: Spare, limit: number): Promise<Pick<Spare, 'beat' | 'beatAt'>> {
    const now = this.#clock.now()
    if (now < spare.beatAt + spare.beat.ttl * FRESH) return spare
    return { beat: await this.#shared.keepAlive(spare.lease, limit), beatAt: now }
  }
}

import type { Claim, Grant } from '../../contract/store.ts'
import { requestLimit } from '../../contract/time.ts'
import type { Changes } from './changes.ts'
import { secondsOf } from './keys.ts'
import { type Known, orMissing } from './leases.ts'
import type { KeyValue } from './messages.ts'
import type { Parts } from './parts.ts'
import { slotsOf } from './record.ts'
import { granted } from './requests.ts'

/** Finds grants that claims may have without knowing it. */
export class Recovery {
  readonly #parts: Parts
  readonly #changes: Changes

  constructor(parts: Parts, changes: Changes) {
    this.#parts = parts
    this.#changes = changes
  }

  /** Settles an unanswered request of a claim with a pooled lease: afterwards it was granted, or can never be. */
  async settle(claim: Claim): Promise<Grant | undefined> {
    const { leases } = this.#parts
    const known = leases.known(claim.id)
    if (!known?.loan) return undefined
    let held = await this.recover(claim)
    // A copy of the request may have been granted after the key was read.
    if (!held && known.loan.revision !== undefined) held = await this.recover(claim)
    if (held) return held
    const isKnown = (): boolean => leases.known(claim.id)?.loan === known.loan
    // A release of the claim has returned the lease meanwhile. Another claim may use it.
    if (known.loan.isOver && !isKnown()) return undefined
    // The request may still arrive, but has no effect once its lease is revoked. The revoke of an earlier attempt does not
    // count, because it may arrive even later.
    known.loan.isOver = true
    await leases.revoke(known.lease).catch(orMissing)
    if (isKnown()) leases.forget(claim.id)
    return undefined
  }

  async recover(claim: Claim): Promise<Grant | undefined> {
    const { keys, leases, requests } = this.#parts
    const { name, id, ttl } = claim
    const before = leases.known(id)
    const { found, term } = await requests.look(keys.held(name, id), requestLimit(ttl))
    return found && this.#again(claim, found, term, before)
  }

  /** A holder asks again. This never shortens its lease. `before`: what was known before the key was read. */
  async #again(claim: Claim, found: KeyValue, confirmed: number, before: Known | undefined): Promise<Grant> {
    const { clock, leases } = this.#parts
    const { id, ttl } = claim
    const { lease = '0', create_revision: revision } = found
    const beatAt = clock.now()
    const beat = await leases.keepAlive(lease, requestLimit(ttl))
    const loan = [leases.known(id), before].find(known => known?.lease === lease)?.loan
    // If the loan is over, an earlier attempt revokes the lease, which must not delete this key, or has deleted it and
    // forgotten the lease. So the key moves.
    if (beat.ttl > 0 && (beat.ttl < ttl || loan?.isOver)) return this.#changes.ttl(claim, found)
    if (loan) {
      loan.pooled = { ...loan.pooled, beat, beatAt }
      loan.revision = revision
    } else leases.know(id, { lease, seconds: secondsOf(beat.ttl) })
    return granted(revision, beat, confirmed, slotsOf(found))
  }
}

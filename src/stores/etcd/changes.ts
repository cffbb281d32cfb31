import type { Claim, Grant } from '../../contract/store.ts'
import { requestLimit } from '../../contract/time.ts'
import { leaseOf, secondsOf } from './keys.ts'
import { orMissing } from './leases.ts'
import type { KeyValue } from './messages.ts'
import type { Parts } from './parts.ts'
import { annotated, idOf, slotsOf } from './record.ts'
import { granted, termOf, vanished } from './requests.ts'
import { madeAt, onLease, unchanged } from './txn.ts'

/** Changes the ttl or the note of a lease. The key stays, and so does the token. */
export class Changes {
  readonly #parts: Parts

  constructor(parts: Parts) {
    this.#parts = parts
  }

  /** Moves the key to an etcd lease of another ttl. */
  async ttl({ id, ttl }: Claim, found: KeyValue): Promise<Grant> {
    const { gateway, leases } = this.#parts
    const [seconds, limit] = [secondsOf(ttl), requestLimit(ttl)]
    const lease = leaseOf(id, seconds, found.mod_revision)
    // A keepalive would not change what a stale request compares. So each renewal moves the key until one is answered.
    leases.know(id, { lease: found.lease ?? '0', seconds, ...leases.known(id), mayMove: true })
    const beat = await leases.grant(lease, ttl, limit)
    const put = { request_put: { key: found.key, ignore_value: true, lease } }
    // A stale request must not undo a later change, so it compares the lease. The note may have changed.
    const compare = [madeAt(found.key, found.create_revision), onLease(found.key, found.lease)]
    const { succeeded, header } = await gateway.txn({ compare, success: [put] }, limit)
    if (!succeeded) throw vanished()
    const { loan } = leases.known(id) ?? {}
    if (loan) loan.isOver = true
    leases.know(id, { lease, seconds })
    // A release through another store, such as that of the heartbeat's thread, must not find the old lease.
    if (found.lease !== undefined) await leases.revoke(found.lease).catch(orMissing)
    return granted(found.create_revision, beat, termOf(header), slotsOf(found))
  }

  /** Writes the note of the claim. Resolves to false if the claim no longer holds. */
  async note({ name, id, note, ttl }: Claim, signal: AbortSignal): Promise<boolean> {
    const { gateway, keys, requests } = this.#parts
    const limit = requestLimit(ttl)
    for (;;) {
      const { found } = await requests.look(keys.held(name, id), limit)
      if (!found || idOf(found) !== id) return false
      signal.throwIfAborted()
      const put = { request_put: { key: found.key, value: annotated(found, note), ignore_lease: true } }
      // A stale request must not undo a later note, so it compares the revision.
      const { succeeded } = await gateway.txn({ compare: [unchanged(found)], success: [put] }, limit)
      if (succeeded) return true
    }
  }
}

import type { Claim, Grant } from '../../contract/store.ts'
import { requestLimit } from '../../contract/time.ts'
import type { Gateway } from './gateway.ts'
import { type Keys, leaseOf, secondsOf } from './keys.ts'
import { type Leases, orMissing } from './leases.ts'
import type { KeyValue } from './messages.ts'
import { annotated, idOf } from './record.ts'
import { granted, type Shared, termOf, vanished } from './shared.ts'
import { madeAt, onLease, unchanged } from './txn.ts'

/** What changes while a name is held. The key stays, and with it the token. */
export class Changes {
  readonly #gateway: Gateway
  readonly #keys: Keys
  readonly #shared: Shared
  readonly #leases: Leases

  constructor(gateway: Gateway, keys: Keys, shared: Shared, leases: Leases) {
    this.#gateway = gateway
    this.#keys = keys
    this.#shared = shared
    this.#leases = leases
  }

  /** Moves what is held to a lease of another ttl. */
  async ttl({ id, ttl }: Claim, found: KeyValue): Promise<Grant> {
    const limit = requestLimit(ttl)
    const lease = leaseOf(id, secondsOf(ttl), found.mod_revision)
    const beat = await this.#leases.grant(lease, ttl, limit)
    const put = { request_put: { key: found.key, ignore_value: true, lease } }
    // A late copy of this would undo a later change, which it sees by the lease. A new note is no matter.
    const compare = [madeAt(found.key, found.create_revision), onLease(found.key, found.lease)]
    const { succeeded, header } = await this.#gateway.txn({ compare, success: [put] }, limit)
    if (!succeeded) throw vanished()
    const { tenancy } = this.#leases.known(id) ?? {}
    if (tenancy) tenancy.isOver = true
    this.#leases.know(id, { lease, seconds: secondsOf(ttl) })
    // A release by another store of the claim, such as that of the heartbeat's thread, must not find the old one.
    if (found.lease !== undefined) await this.#leases.revoke(found.lease).catch(orMissing)
    return granted(found.create_revision, beat, termOf(header))
  }

  /** Writes the note of the claim that holds. False if it holds no more. */
  async note({ name, id, note, ttl }: Claim, signal: AbortSignal): Promise<boolean> {
    const limit = requestLimit(ttl)
    for (;;) {
      const { found } = await this.#shared.look(this.#keys.held(name), limit)
      if (!found || idOf(found) !== id) return false
      signal.throwIfAborted()
      const put = { request_put: { key: found.key, value: annotated(found, note), ignore_lease: true } }
      // A late copy of this would undo a later note, which it sees by the revision.
      const { succeeded } = await this.#gateway.txn({ compare: [unchanged(found)], success: [put] }, limit)
      if (succeeded) return true
    }
  }
}

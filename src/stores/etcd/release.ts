import type { ClaimKey } from '../../contract/store.ts'
import { LONGEST_REQUEST } from '../../contract/time.ts'
import { isFull, isLeaseMissing, isRepetition } from './failure.ts'
import type { Gateway } from './gateway.ts'
import type { Keys } from './keys.ts'
import { isPooled } from './lease-pool.ts'
import { type Leases, orMissing } from './leases.ts'
import type { KeyValue } from './messages.ts'
import { idOf } from './record.ts'
import type { Requests } from './requests.ts'
import { leave, leftAt, madeAt, outcomeOf, unchanged } from './txn.ts'
import type { Uncontended } from './uncontended.ts'

export interface ReleasesOptions {
  readonly gateway: Gateway
  readonly keys: Keys
  readonly requests: Requests
  readonly leases: Leases
  readonly uncontended: Uncontended
}

/** Ends claims: by their release, or by a break. */
export class Releases {
  readonly #gateway: Gateway
  readonly #keys: Keys
  readonly #requests: Requests
  readonly #leases: Leases
  readonly #uncontended: Uncontended

  constructor({ gateway, keys, requests, leases, uncontended }: ReleasesOptions) {
    this.#gateway = gateway
    this.#keys = keys
    this.#requests = requests
    this.#leases = leases
    this.#uncontended = uncontended
  }

  async release(key: ClaimKey, signal: AbortSignal): Promise<'released' | 'gone'> {
    const { id } = key
    if (await this.#uncontended.leave(key, signal)) return 'released'
    const known = this.#leases.known(id)
    let mayBeDone = false
    // Only the store that granted a pooled lease may revoke it.
    if (known && (known.loan?.isOver === false || !isPooled(known.lease))) {
      if (known.loan) known.loan.isOver = true
      try {
        await this.#leases.revoke(known.lease)
        this.#leases.forget(id)
        return 'released'
      } catch (error) {
        if (!isLeaseMissing(error)) throw error
        mayBeDone = isRepetition(error)
      }
    }
    const found = await this.#withdraw(key, signal)
    this.#leases.forget(id)
    return found || mayBeDone ? 'released' : 'gone'
  }

  async break(name: string, token: bigint | undefined, signal: AbortSignal): Promise<bigint | undefined> {
    const key = this.#keys.held(name)
    const { found } = await this.#requests.look(key, LONGEST_REQUEST)
    if (!found || (token !== undefined && BigInt(found.create_revision) !== token)) return undefined
    signal.throwIfAborted()
    const same = madeAt(key, found.create_revision)
    // Revoking the lease deletes the key. If the key has no lease, or a new one by now, the transaction deletes it.
    const ended = await this.#end(found, same, `broken ${found.create_revision}`)
    const { succeeded, header } = await this.#gateway.txn(deletion(same, key))
    return succeeded ? BigInt(header.revision) : ended
  }

  /** Ends a claim that this store may not know. If there is nothing of it, a tombstone refuses it when it arrives. */
  async #withdraw({ name, id }: ClaimKey, signal: AbortSignal): Promise<boolean> {
    const keys = [this.#keys.held(name), this.#keys.place(name, id)]
    for (;;) {
      const sights = await Promise.all(keys.map(key => this.#requests.look(key, LONGEST_REQUEST)))
      signal.throwIfAborted()
      const mine = sights.map(({ found }) => found).find(found => found && idOf(found) === id)
      if (mine) {
        if ((await this.#end(mine, unchanged(mine), id)) !== undefined) return true
        if ((await this.#gateway.txn(deletion(unchanged(mine), mine.key))).succeeded) return true
        continue
      }
      const put = { request_put: { key: this.#keys.gone(id), lease: await this.#leases.tombstones() } }
      // It may have arrived meanwhile. Others come and go, and do not matter.
      const reads = keys.map(key => ({ request_range: { key } }))
      const { responses = [] } = await this.#gateway.txn({ success: [put, ...reads] })
      const found = responses.flatMap(({ response_range }) => response_range?.kvs ?? [])
      if (!found.some(each => idOf(each) === id)) return false
    }
  }

  /** Revokes the lease of a key, or removes the key from a pooled lease. Resolves as `Leases.endOf`. */
  async #end(found: KeyValue, condition: object, left: string): Promise<bigint | undefined> {
    const { key, lease } = found
    if (!isPooled(lease)) return this.#leases.endOf(found)
    const answer = await this.#gateway.txn(leave(this.#keys, condition, { key, lease, left })).catch(error => {
      if (!isFull(error)) return orMissing(error) // the caller deletes the key alone
    })
    const at = answer && leftAt(outcomeOf(answer), left)
    return at === undefined ? undefined : BigInt(at)
  }
}

function deletion(condition: object, key: string): object {
  return { compare: [condition], success: [{ request_delete_range: { key } }] }
}

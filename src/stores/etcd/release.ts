import type { BreakParameters, ClaimKey } from '../../contract/store.ts'
import { LONGEST_REQUEST } from '../../contract/time.ts'
import { isFull } from './failure.ts'
import type { Grants } from './grants.ts'
import { isPooled } from './lease-pool.ts'
import { orMissing } from './leases.ts'
import type { KeyValue } from './messages.ts'
import type { Parts } from './parts.ts'
import type { Waiter } from './queue.ts'
import { idOf, slotsOf } from './record.ts'
import { absent, isOwn, leave, leftAt, madeAt, outcomeOf, unchanged } from './txn.ts'

/** Ends claims by their release, or by a break. */
export class Releases {
  readonly #parts: Parts
  readonly #grants: Grants

  constructor(parts: Parts, grants: Grants) {
    this.#parts = parts
    this.#grants = grants
  }

  /** `waiter`: its position, if this process knows it. */
  async release(key: ClaimKey, waiter: Waiter | undefined, signal: AbortSignal): Promise<'released' | 'gone'> {
    const { gateway, keys, leases } = this.#parts
    const { name, id } = key
    if (await this.#grants.leave(key, signal)) return 'released'
    const position = keys.position(name, id)
    const hasLeft = waiter && (await gateway.txn(deletion(madeAt(position, waiter.revision), position))).succeeded
    const found = hasLeft || (await this.#withdraw(key, signal))
    // A lease that is still lent has no key of the claim, and never will.
    leases.evict(id)
    leases.forget(id)
    return found ? 'released' : 'gone'
  }

  /**
   * Breaks leases. The token is higher than those of all leases that end, because it comes after them. It is lower than the
   * next one, which only the deletion makes possible.
   */
  async break(name: string, { token, slot }: BreakParameters, signal: AbortSignal): Promise<bigint | undefined> {
    const { gateway, keys } = this.#parts
    const { kvs: holders = [] } = await gateway.range(keys.holders(name))
    signal.throwIfAborted()
    const ended = holders.filter(found => {
      return (
        (token ?? BigInt(found.create_revision)) === BigInt(found.create_revision) &&
        (slot === undefined || slotsOf(found).includes(slot))
      )
    })
    const highest = Math.max(...ended.map(found => Number(found.create_revision)))
    const revisions = (await Promise.all(ended.map(found => this.#break(found)))).filter(each => each !== undefined)
    if (revisions.length === 0) return undefined
    const first = revisions.reduce((a, b) => (a < b ? a : b))
    return first > highest ? first : BigInt(highest) + 1n
  }

  /** Resolves to the revision at which the lease ended. `undefined`: it had ended before. */
  async #break(found: KeyValue): Promise<bigint | undefined> {
    const { gateway } = this.#parts
    const same = madeAt(found.key, found.create_revision)
    // Revoking the lease deletes the key. If the key has no lease or a new one, the transaction deletes it.
    const ended = await this.#end(found, same, `broken ${found.create_revision}`)
    const { succeeded, header } = await gateway.txn(deletion(same, found.key))
    return succeeded ? BigInt(header.revision) : ended
  }

  /** Ends a claim that this store may not know. If nothing of it exists, a tombstone refuses it when it arrives. */
  async #withdraw({ name, id }: ClaimKey, signal: AbortSignal): Promise<boolean> {
    const { gateway, keys, leases, requests } = this.#parts
    const [held, position] = [keys.held(name, id), keys.position(name, id)]
    for (;;) {
      const sights = await Promise.all([held, position].map(key => requests.look(key, LONGEST_REQUEST)))
      signal.throwIfAborted()
      const mine = sights.map(({ found }) => found).find(found => found && idOf(found) === id)
      if (mine) {
        // The lease of a position also keeps the positions of other waiters.
        if (mine.key === held && (await this.#end(mine, unchanged(mine), id)) !== undefined) return true
        if ((await gateway.txn(deletion(unchanged(mine), mine.key))).succeeded) return true
        continue
      }
      const put = { request_put: { key: keys.gone(id), lease: await leases.tombstones() } }
      // The claim may have arrived meanwhile. Other claims come and go, and do not matter.
      const compare = [held, position].map(key => absent({ key }))
      if ((await gateway.txn({ compare, success: [put] })).succeeded) return false
    }
  }

  /** Revokes the lease of a key, or removes the key from a pooled lease. Resolves like `Leases.endOf`. */
  async #end(found: KeyValue, condition: object, left: string): Promise<bigint | undefined> {
    const { gateway, keys, leases } = this.#parts
    const { key, lease } = found
    if (!isPooled(lease)) return leases.endOf(found)
    const answer = await gateway.txn(leave(keys, condition, { key, lease, left })).catch(error => {
      if (!isFull(error)) return orMissing(error) // the caller deletes the key alone
    })
    const outcome = answer && outcomeOf(answer)
    const at = outcome && isOwn(outcome) ? leftAt(outcome, left) : undefined
    return at === undefined ? undefined : BigInt(at)
  }
}

function deletion(condition: object, key: string): object {
  return { compare: [condition], success: [{ request_delete_range: { key } }] }
}

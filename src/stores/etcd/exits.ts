import type { ClaimKey } from '../../contract/store.ts'
import { LONGEST_REQUEST } from '../../contract/time.ts'
import type { Direct } from './direct.ts'
import { isFull, isLeaseMissing, isRepetition } from './failure.ts'
import type { Gateway } from './gateway.ts'
import type { Keys } from './keys.ts'
import { type Leases, orMissing } from './leases.ts'
import type { KeyValue } from './messages.ts'
import { idOf } from './record.ts'
import type { Shared } from './shared.ts'
import { isSpare } from './spares.ts'
import { absent, leave, leftAt, madeAt, outcomeOf, unchanged } from './txn.ts'

export interface ExitsOptions {
  readonly gateway: Gateway
  readonly keys: Keys
  readonly shared: Shared
  readonly leases: Leases
  readonly direct: Direct
}

/** How claims end, by themselves or by others. */
export class Exits {
  readonly #gateway: Gateway
  readonly #keys: Keys
  readonly #shared: Shared
  readonly #leases: Leases
  readonly #direct: Direct

  constructor({ gateway, keys, shared, leases, direct }: ExitsOptions) {
    this.#gateway = gateway
    this.#keys = keys
    this.#shared = shared
    this.#leases = leases
    this.#direct = direct
  }

  async release(key: ClaimKey, signal: AbortSignal): Promise<'released' | 'gone'> {
    const { id } = key
    if (await this.#direct.leave(key, signal)) return 'released'
    const known = this.#leases.known(id)
    let mayBeDone = false
    // A lease of another store is for that to end.
    if (known && (known.tenancy?.isOver === false || !isSpare(known.lease))) {
      if (known.tenancy) known.tenancy.isOver = true
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

  async break(name: string, signal: AbortSignal): Promise<bigint | undefined> {
    const key = this.#keys.held(name)
    const { found } = await this.#shared.look(key, LONGEST_REQUEST)
    if (!found) return undefined
    signal.throwIfAborted()
    const same = madeAt(key, found.create_revision)
    // The lease and the key end in one; of a claim without a lease, or on a new one by now, the key is deleted.
    const ended = await this.#end(found, same, `broken ${found.create_revision}`)
    const { succeeded, header } = await this.#gateway.txn(deletion(same, key))
    return succeeded ? BigInt(header.revision) : ended
  }

  /** Ends what there is of a claim, also if this store does not know it; else it is refused when it arrives. */
  async #withdraw({ name, id }: ClaimKey, signal: AbortSignal): Promise<boolean> {
    for (;;) {
      const [held, place] = await Promise.all([
        this.#shared.look(this.#keys.held(name), LONGEST_REQUEST),
        this.#shared.look(this.#keys.place(name, id), LONGEST_REQUEST),
      ])
      signal.throwIfAborted()
      const mine = held.found && idOf(held.found) === id ? held.found : place.found
      if (mine) {
        if ((await this.#end(mine, unchanged(mine), id)) !== undefined) return true
        if ((await this.#gateway.txn(deletion(unchanged(mine), mine.key))).succeeded) return true
        continue
      }
      const put = { request_put: { key: this.#keys.gone(id), lease: await this.#leases.tombstones() } }
      const stillNothing = [
        held.found ? unchanged(held.found) : absent({ key: this.#keys.held(name) }),
        absent({ key: this.#keys.place(name, id) }),
      ]
      if ((await this.#gateway.txn({ compare: stillNothing, success: [put] })).succeeded) return false
    }
  }

  /** Ends the lease that a key is on or, if others may be on it later, takes the key from it; see `Leases.endOf`. */
  async #end(found: KeyValue, condition: object, left: string): Promise<bigint | undefined> {
    const { key, lease } = found
    if (!isSpare(lease)) return this.#leases.endOf(found)
    const answer = await this.#gateway.txn(leave(this.#keys, condition, { key, lease, left })).catch(error => {
      if (!isFull(error)) return orMissing(error) // else the key alone can go
    })
    const at = answer && leftAt(outcomeOf(answer), left)
    return at === undefined ? undefined : BigInt(at)
  }
}

function deletion(condition: object, key: string): object {
  return { compare: [condition], success: [{ request_delete_range: { key } }] }
}

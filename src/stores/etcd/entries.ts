import { Batch } from '../../batch.ts'
import type { Claim } from '../../store.ts'
import { requestLimit } from '../../time.ts'
import { isLeaseMissing } from './failure.ts'
import type { Gateway } from './gateway.ts'
import type { Keys } from './keys.ts'
import type { Header, TxnAnswer } from './messages.ts'
import { takeIfFree } from './txn.ts'

interface Entry {
  readonly claim: Claim
  readonly lease: string
  readonly signal: AbortSignal
  resolve(header: Header | undefined): void
  reject(error: unknown): void
}

/** etcd takes 128 operations in one transaction unless told otherwise, and each of these has three comparisons. */
const LARGEST = 64

/** Takes names that are free: the claims that come while others are under way share a transaction. */
export class Entries {
  readonly #gateway: Gateway
  readonly #keys: Keys
  readonly #batch: Batch<Entry>
  /** By name: two cannot be in one transaction, nor learn from its revision which of them came first. */
  readonly #underWay = new Map<string, Promise<Header | undefined>>()

  constructor(gateway: Gateway, keys: Keys) {
    this.#gateway = gateway
    this.#keys = keys
    this.#batch = new Batch({ limit: LARGEST, send: (entries, next) => void this.#send(entries).finally(next) })
  }

  /**
   * Resolves to the header of the answer, whose revision is the token; to `undefined` if the name is not free, also
   * because another claim of this process takes it just now.
   */
  async take(claim: Claim, lease: string, signal: AbortSignal): Promise<Header | undefined> {
    const { name, queue } = claim
    for (let other = this.#underWay.get(name); other; other = this.#underWay.get(name))
      if (queue || (await settles(other))) return undefined
    const taking = new Promise<Header | undefined>((resolve, reject) =>
      this.#batch.add({ claim, lease, signal, resolve, reject }),
    )
    this.#underWay.set(name, taking)
    try {
      return await taking
    } finally {
      this.#underWay.delete(name)
    }
  }

  async #send(all: readonly Entry[]): Promise<void> {
    const txns = all.map(({ claim, lease }) => takeIfFree(this.#keys, claim, lease))
    const limit = Math.max(...all.map(({ claim }) => requestLimit(claim.ttl)))
    try {
      const { header, responses, ...only } = await this.#ask(txns, limit)
      for (const [index, entry] of all.entries()) {
        const { succeeded } = all.length === 1 ? only : (responses?.[index]?.response_txn ?? {})
        entry.resolve(succeeded ? header : undefined)
      }
    } catch (error) {
      // Of one claim the lease was revoked meanwhile, and so nothing was done for any.
      if (all.length > 1 && isLeaseMissing(error)) await Promise.all(all.map(entry => this.#send([entry])))
      else for (const entry of all) entry.reject(error)
    }
  }

  #ask(txns: readonly object[], limit: number): Promise<TxnAnswer> {
    const [first = {}] = txns
    return this.#gateway.txn(txns.length === 1 ? first : { success: txns.map(request_txn => ({ request_txn })) }, limit)
  }
}

function settles(promise: Promise<unknown>): Promise<boolean> {
  return promise.then(
    () => true,
    () => false,
  )
}

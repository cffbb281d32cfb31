import type { Claim } from '../../contract/store.ts'
import { requestLimit } from '../../contract/time.ts'
import { BatchedTransactions } from './batched-transactions.ts'
import type { Gateway } from './gateway.ts'
import type { Keys } from './keys.ts'
import type { PooledLease } from './lease-pool.ts'
import { type Outcome, takeIfFree } from './txn.ts'

/** Acquires free names. Claims that arrive while others are in flight share a transaction. */
export class FreeNames {
  readonly #keys: Keys
  readonly #txns: BatchedTransactions
  /** By name. One transaction cannot serve two claims of a name: they would get the same revision, and so token. */
  readonly #underWay = new Map<string, Promise<Outcome>>()

  constructor(gateway: Gateway, keys: Keys) {
    this.#keys = keys
    this.#txns = new BatchedTransactions(gateway)
  }

  /** `undefined`: no request was sent, because another claim of this process is acquiring the name. */
  async take(
    claim: Claim,
    pooled: Pick<PooledLease, 'lease' | 'mark'>,
    signal: AbortSignal,
  ): Promise<Outcome | undefined> {
    const { name, queue, ttl } = claim
    for (let other = this.#underWay.get(name); other; other = this.#underWay.get(name))
      if (queue || (await settles(other))) return undefined
    const taking = this.#txns.put(takeIfFree(this.#keys, claim, pooled), requestLimit(ttl), signal)
    this.#underWay.set(name, taking)
    try {
      return await taking
    } finally {
      this.#underWay.delete(name)
    }
  }
}

function settles(promise: Promise<unknown>): Promise<boolean> {
  return promise.then(
    () => true,
    () => false,
  )
}

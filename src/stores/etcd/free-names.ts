import type { Claim } from '../../contract/store.ts'
import { requestLimit } from '../../contract/time.ts'
import { BatchedTransactions } from './batched-transactions.ts'
import type { Gateway } from './gateway.ts'
import type { Outcome } from './txn.ts'

/** Acquires free names. Claims that arrive while others are in flight share a transaction. */
export class FreeNames {
  readonly #txns: BatchedTransactions
  /**
   * The requests in flight, by name. One transaction cannot serve two claims of a name: they would get the same revision,
   * and so the same token.
   */
  readonly #underWay = new Map<string, Promise<Outcome>>()

  constructor(gateway: Gateway) {
    this.#txns = new BatchedTransactions(gateway)
  }

  /** Resolves to `undefined` if no request was sent, because another claim of this process is acquiring the name. */
  async take(txn: object, { name, queue, ttl }: Claim, signal: AbortSignal): Promise<Outcome | undefined> {
    for (let other = this.#underWay.get(name); other; other = this.#underWay.get(name))
      if (queue || (await settles(other))) return undefined
    const taking = this.#txns.put(txn, requestLimit(ttl), signal)
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

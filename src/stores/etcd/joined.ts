import { Batch } from '../shared/batch.ts'
import { isDuplicate, isLeaseMissing } from './failure.ts'
import type { Gateway } from './gateway.ts'
import type { TxnAnswer } from './messages.ts'
import { type Outcome, outcomeOf } from './txn.ts'

interface Entry {
  readonly txn: object
  readonly limit: number
  readonly signal: AbortSignal
  resolve(outcome: Outcome): void
  reject(error: unknown): void
}

/** etcd takes 128 operations in one transaction unless told otherwise. */
const LARGEST = 64

/** Transactions of which each is for itself: those that come while others are under way share a request and a write. */
export class JoinedTxns {
  readonly #gateway: Gateway
  readonly #batch: Batch<Entry>

  constructor(gateway: Gateway) {
    this.#gateway = gateway
    this.#batch = new Batch({ limit: LARGEST, send: (entries, next) => void this.#send(entries).finally(next) })
  }

  /** Rejects as `Gateway.ask` does. */
  put(txn: object, limit: number, signal: AbortSignal): Promise<Outcome> {
    return new Promise((resolve, reject) => this.#batch.add({ txn, limit, signal, resolve, reject }))
  }

  async #send(all: readonly Entry[]): Promise<void> {
    const txns = all.map(({ txn }) => txn)
    const limit = Math.max(...all.map(entry => entry.limit))
    try {
      const answer = await this.#ask(txns, limit)
      const { header, responses } = answer
      for (const [index, entry] of all.entries())
        entry.resolve(outcomeOf(all.length === 1 ? answer : { ...responses?.[index]?.response_txn, header }))
    } catch (error) {
      // Of one the lease has ended, or two change the same, and so nothing was done for any.
      if (all.length > 1 && (isLeaseMissing(error) || isDuplicate(error)))
        await Promise.all(all.map(entry => this.#send([entry])))
      else for (const entry of all) entry.reject(error)
    }
  }

  #ask(txns: readonly object[], limit: number): Promise<TxnAnswer> {
    const [first = {}] = txns
    return this.#gateway.txn(txns.length === 1 ? first : { success: txns.map(request_txn => ({ request_txn })) }, limit)
  }
}

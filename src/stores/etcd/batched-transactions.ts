import { Batch } from '../wire/batch.ts'
import { isDuplicate, isLeaseMissing, isRepetition } from './failure.ts'
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

/** The largest number of transactions in one request. By default etcd accepts 128 operations in one transaction. */
const LARGEST = 64

/** Sends independent transactions. Those that arrive while others are in flight share a request and a write. */
export class BatchedTransactions {
  readonly #gateway: Gateway
  readonly #batch: Batch<Entry>

  constructor(gateway: Gateway) {
    this.#gateway = gateway
    this.#batch = new Batch({ limit: LARGEST, send: (entries, next) => void this.#send(entries).finally(next) })
  }

  /** Rejects like `Gateway.ask`. */
  put(txn: object, limit: number, signal: AbortSignal): Promise<Outcome> {
    return new Promise((resolve, reject) => this.#batch.add({ txn, limit, signal, resolve, reject }))
  }

  /** `wasRepeated`: `Outcome.isRepeated` of an earlier batch that contained these transactions. */
  async #send(all: readonly Entry[], wasRepeated = false): Promise<void> {
    const txns = all.map(({ txn }) => txn)
    const limit = Math.max(...all.map(entry => entry.limit))
    try {
      const answer = await this.#ask(txns, limit)
      const { header, responses } = answer
      const isRepeated = wasRepeated || answer.isRepeated
      for (const [index, entry] of all.entries())
        entry.resolve(
          outcomeOf({ ...(all.length === 1 ? answer : responses?.[index]?.response_txn), header, isRepeated }),
        )
    } catch (error) {
      // A lease has ended, or two transactions change the same key. So etcd did nothing for any of them.
      if (all.length > 1 && (isLeaseMissing(error) || isDuplicate(error)))
        await Promise.all(all.map(entry => this.#send([entry], isRepetition(error))))
      else for (const entry of all) entry.reject(error)
    }
  }

  #ask(txns: readonly object[], limit: number): Promise<TxnAnswer> {
    const [first = {}] = txns
    return this.#gateway.txn(txns.length === 1 ? first : { success: txns.map(request_txn => ({ request_txn })) }, limit)
  }
}

import { invalid } from '../contract/check.ts'
import { checkFence, type FenceOptions, type Presented, presentedByAll } from '../fencing/fence.ts'
import { type Shown, staleToken } from '../fencing/mark.ts'
import type { MarkRecord } from '../fencing/marks.ts'
import { isAlone, isReader, judge, keysOf, NAME } from '../fencing/rule.ts'
import { type FenceEngine, type TransactionFence, transactionFence } from '../fencing/transaction.ts'

export type { FenceCallOptions, FenceOptions } from '../fencing/fence.ts'
export type { Holder, Holders, Mark, Marks, Shown } from '../fencing/mark.ts'
export type { KeptMarks, MarkRecord } from '../fencing/marks.ts'
export type { TransactionFence } from '../fencing/transaction.ts'

export interface TestFenceOptions<Transaction> extends FenceOptions {
  /** The transaction that `work` gets, such as a stub of a client. @default undefined */
  readonly transaction?: Transaction | undefined
}

/**
 * A fence for unit tests, in memory. It decides as `PostgresFence` does, and rejects `STALE_TOKEN`, what a lease that has
 * ended throws, and `INVALID_ARGUMENT`, but no code of a database. If `work` throws, the mark is as before; what
 * `work` changed is not undone. A mark that `check` raised stays if you roll your transaction back. `install` does
 * nothing. `marks.raise(name, { epoch: 0, token })` does what a newer holder with this token would do.
 */
export interface TestFence<Transaction> extends TransactionFence<Transaction, unknown> {}

/** A fence for one test. It has seen no token. Throws `INVALID_ARGUMENT`. */
export function testFence<Transaction = undefined>(
  options: TestFenceOptions<Transaction> = {},
): TestFence<Transaction> {
  checkFence(options, ['transaction'], 'testFence')
  const engine = new TestEngine(options.transaction as Transaction)
  return transactionFence(engine, lease => presentedByAll(lease, options))
}

class TestEngine<Transaction> implements FenceEngine<Transaction> {
  readonly #transaction: Transaction
  readonly #records = new Map<string, Map<string, MarkRecord>>()
  /** The end of the last transaction of a holder of limit 1, by resource. */
  readonly #alone = new Map<string, Promise<unknown>>()
  /** The end of all later transactions, by resource; and of the last one of a slot, by resource and key. */
  readonly #shared = new Map<string, Promise<unknown>>()

  constructor(transaction: Transaction) {
    this.#transaction = transaction
  }

  transaction<Result>(
    presented: readonly Presented[],
    work: (transaction: Transaction) => Promise<Result>,
  ): Promise<Result> {
    return this.#inTurn(presented, async () => {
      const restore = this.#raise(presented)
      try {
        return await work(this.#transaction)
      } catch (error) {
        restore()
        throw error
      }
    })
  }

  async check(presented: readonly Presented[], transaction: unknown): Promise<void> {
    if (transaction !== this.#transaction)
      throw invalid('fence.check(lease, transaction) needs the transaction of testFence({ transaction })')
    this.#raise(presented)
  }

  async raise(presented: readonly Presented[], signal?: AbortSignal): Promise<void> {
    await this.#inTurn(presented, () => {
      signal?.throwIfAborted()
      this.#raise(presented)
    })
  }

  async install(): Promise<void> {}

  /** Runs `work` after the earlier transactions that exclude it. */
  #inTurn<Result>(presented: readonly Presented[], work: () => Promise<Result> | Result): Promise<Result> {
    const turn = Promise.all(presented.flatMap(each => this.#before(each))).then(work)
    const ended = turn.catch(() => {})
    for (const { resource, mark } of presented) {
      if (isAlone(mark)) this.#alone.set(resource, ended)
      else this.#shared.set(resource, Promise.all([this.#shared.get(resource), ended]))
      for (const slot of slotsOf(resource, mark)) this.#shared.set(slot, ended)
    }
    return turn
  }

  #before({ resource, mark }: Presented): Promise<unknown>[] {
    const slots = isAlone(mark) ? [resource] : slotsOf(resource, mark)
    const all = [this.#alone.get(resource), ...slots.map(slot => this.#shared.get(slot))]
    return all.filter(each => each !== undefined)
  }

  /**
   * Raises the marks, or none and throws `STALE_TOKEN`. Returns a function that restores the earlier marks, except those
   * that were changed again: a rollback must not lower the mark of another holder.
   */
  #raise(presented: readonly Presented[]): () => void {
    const raised = presented.flatMap(({ resource, mark }) => {
      const judged = judge(this.#marksOf(resource), mark)
      if ('highest' in judged) throw staleToken(resource, mark, judged.highest)
      const raisedAt = Date.now()
      return [...judged.raised].map(([key, { epoch, token }]) => ({
        key,
        record: { resource, ...(key !== NAME && { slot: key }), epoch, token, raisedAt },
        seen: this.#marksOf(resource).get(key),
      }))
    })
    for (const { key, record } of raised) this.#set(key, record)
    return () => {
      for (const { key, record, seen } of raised) {
        const marks = this.#marksOf(record.resource)
        if (marks.get(key) !== record) continue
        if (seen) marks.set(key, seen)
        else marks.delete(key)
      }
    }
  }

  async list(prefix: string): Promise<readonly MarkRecord[]> {
    const listed = [...this.#records.values()].flatMap(marks => [...marks.values()])
    const order = ({ resource, slot = NAME }: MarkRecord): string => `${resource}\n${slot}`
    return listed
      .filter(({ resource }) => resource.startsWith(prefix))
      .sort((one, other) => (order(one) < order(other) ? -1 : 1))
  }

  async advance(resource: string): Promise<number | undefined> {
    return this.#inTurn([{ resource, mark: { epoch: 0, token: 0n } }], () => {
      const marks = this.#marksOf(resource)
      if (marks.size === 0) return undefined
      const epoch = 1 + Math.max(...[...marks.values()].map(mark => mark.epoch))
      this.#set(NAME, { resource, epoch, token: 0n, raisedAt: Date.now() })
      return epoch
    })
  }

  async prune(olderThan: number, prefix: string): Promise<number> {
    const before = Date.now() - olderThan
    let pruned = 0
    for (const resource of new Set((await this.list(prefix)).map(record => record.resource))) {
      const marks = this.#marksOf(resource)
      if ([...marks.values()].some(({ raisedAt }) => raisedAt >= before)) continue
      this.#records.delete(resource)
      pruned += marks.size
    }
    return pruned
  }

  #marksOf(resource: string): Map<string, MarkRecord> {
    return this.#records.get(resource) ?? new Map<string, MarkRecord>()
  }

  #set(key: string, record: MarkRecord): void {
    this.#records.set(record.resource, this.#marksOf(record.resource).set(key, record))
  }
}

/** The keys of the slots, whose transactions exclude each other. Transactions of readers do not. */
function slotsOf(resource: string, mark: Shown): string[] {
  return isAlone(mark) || isReader(mark) ? [] : keysOf(mark).map(key => `${resource}\n${key}`)
}

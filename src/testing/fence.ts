import { checkText } from '../contract/check.ts'
import type { WorkArguments } from '../core/work.ts'
import {
  abortable,
  assertNotEnded,
  checkAge,
  checkFence,
  checkMark,
  checkResource,
  type FenceCallOptions,
  type FenceOptions,
  type KeptMarks,
  type MarkRecord,
  type Presented,
  presentedByAll,
  signalOf,
  type TransactionFence,
  transactionArguments,
} from '../fencing/fence.ts'
import { type Holder, type Holders, type Shown, staleToken } from '../fencing/mark.ts'
import { isAlone, isReader, judge, keysOf, NAME } from '../fencing/rule.ts'

export type { FenceCallOptions, FenceOptions, KeptMarks, MarkRecord, TransactionFence } from '../fencing/fence.ts'
export type { Holder, Holders, Mark, Marks, Shown } from '../fencing/mark.ts'

export interface TestFenceOptions<Transaction> extends FenceOptions {
  /** What `work` gets as its transaction, such as a stub of a client. @default undefined */
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
  const marks = new TestMarks()
  return {
    async transaction<Result>(lease: Holder | Holders, ...args: WorkArguments<FenceCallOptions, Transaction, Result>) {
      const { signal, work } = transactionArguments(args)
      const presented = presentedByAll(lease, options)
      let isWorking = false
      const carriedOut = marks.inTurn(presented, async () => {
        signal?.throwIfAborted()
        const restore = marks.raiseNow(presented)
        try {
          isWorking = true
          const result = await work(options.transaction as Transaction)
          signal?.throwIfAborted()
          assertNotEnded(lease)
          return result
        } catch (error) {
          restore()
          throw error
        }
      })
      return abortable(carriedOut, signal, () => isWorking)
    },
    async check(lease) {
      marks.raiseNow(presentedByAll(lease, options))
    },
    async touch(lease, call) {
      await marks.raiseAll(presentedByAll(lease, options), signalOf(call, 'touch'))
    },
    marks,
    async install() {},
  }
}

class TestMarks implements KeptMarks {
  readonly #records = new Map<string, Map<string, MarkRecord>>()
  /** By resource: settles when the last transaction of a holder of limit 1 has ended. */
  readonly #alone = new Map<string, Promise<unknown>>()
  /** By resource: settles when all later ones have ended. By resource and key: when the last one of that slot has. */
  readonly #shared = new Map<string, Promise<unknown>>()

  /** Runs `work` after the transactions of these holders that were begun before and exclude it. */
  inTurn<Result>(presented: readonly Presented[], work: () => Promise<Result> | Result): Promise<Result> {
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
  raiseNow(presented: readonly Presented[]): () => void {
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

  async raise(resource: string, mark: Shown, signal?: AbortSignal): Promise<void> {
    checkResource(resource)
    checkMark(mark)
    await this.raiseAll([{ resource, mark }], signal)
  }

  async raiseAll(presented: readonly Presented[], signal: AbortSignal | undefined): Promise<void> {
    const raised = this.inTurn(presented, () => {
      signal?.throwIfAborted()
      this.raiseNow(presented)
    })
    await abortable(raised, signal)
  }

  async list(prefix = ''): Promise<readonly MarkRecord[]> {
    checkText(prefix, 'the prefix')
    const listed = [...this.#records.values()].flatMap(marks => [...marks.values()])
    const order = ({ resource, slot = NAME }: MarkRecord): string => `${resource}\n${slot}`
    return listed
      .filter(({ resource }) => resource.startsWith(prefix))
      .sort((one, other) => (order(one) < order(other) ? -1 : 1))
  }

  async advance(resource: string): Promise<number | undefined> {
    checkResource(resource)
    return this.inTurn([{ resource, mark: { epoch: 0, token: 0n } }], () => {
      const marks = this.#marksOf(resource)
      if (marks.size === 0) return undefined
      const epoch = 1 + Math.max(...[...marks.values()].map(mark => mark.epoch))
      this.#set(NAME, { resource, epoch, token: 0n, raisedAt: Date.now() })
      return epoch
    })
  }

  async prune(olderThan: number, prefix = ''): Promise<number> {
    checkAge(olderThan)
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

/** What the transactions of one slot have in common. Those of readers do not exclude each other. */
function slotsOf(resource: string, mark: Shown): string[] {
  return isAlone(mark) || isReader(mark) ? [] : keysOf(mark).map(key => `${resource}\n${key}`)
}

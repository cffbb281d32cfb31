import { checkKeys, checkSignal, checkText, invalid } from '../contract/check.ts'
import {
  abortable,
  assertNotEnded,
  checkAge,
  checkFence,
  checkMark,
  checkResource,
  type FenceOptions,
  type KeptMarks,
  type MarkRecord,
  type Presented,
  presentedByAll,
  type TransactionFence,
} from '../fencing/fence.ts'
import { compareMarks, type Mark, staleToken } from '../fencing/mark.ts'

export type { FenceOptions, KeptMarks, MarkRecord, TransactionFence, TransactionOptions } from '../fencing/fence.ts'
export type { Holder, Holders, Mark, Marks } from '../fencing/mark.ts'

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
    async transaction(lease, work, { signal, ...rest } = {}) {
      checkKeys(rest, new Set(['signal']), 'transaction')
      checkSignal(signal)
      if (typeof work !== 'function') throw invalid('fence.transaction(lease, work) needs work, a function')
      const presented = presentedByAll(lease, options)
      let isWorking = false
      const carriedOut = marks.inTurn(resourcesOf(presented), async () => {
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
    async check(_transaction, lease) {
      marks.raiseNow(presentedByAll(lease, options))
    },
    async touch(lease, signal) {
      await marks.raiseAll(presentedByAll(lease, options), signal)
    },
    marks,
    async install() {},
  }
}

class TestMarks implements KeptMarks {
  readonly #records = new Map<string, MarkRecord>()
  /** By resource: settles when the last transaction that was begun has ended. */
  readonly #last = new Map<string, Promise<unknown>>()

  /** Runs `work` after the transactions of these resources that were begun before. */
  inTurn<Result>(resources: readonly string[], work: () => Promise<Result> | Result): Promise<Result> {
    const before = Promise.all(resources.map(resource => this.#last.get(resource) ?? Promise.resolve()))
    const turn = before.then(work)
    const ended = turn.catch(() => {})
    for (const resource of resources) this.#last.set(resource, ended)
    return turn
  }

  /**
   * Raises the marks, or none and throws `STALE_TOKEN`. Returns a function that restores the earlier marks, except those
   * that were changed again: a rollback must not lower the mark of another holder.
   */
  raiseNow(presented: readonly Presented[]): () => void {
    const before = presented.map(({ resource }) => this.#records.get(resource))
    for (const [index, { resource, mark }] of presented.entries()) {
      const seen = before[index]
      if (seen && compareMarks(mark, seen) < 0) throw staleToken(resource, mark, seen)
    }
    const raised = presented.map(({ resource, mark: { epoch, token } }, index) => {
      const seen = before[index]
      const raisedAt = seen?.token === token ? seen.raisedAt : Date.now()
      return { resource, epoch, token, raisedAt }
    })
    for (const record of raised) this.#records.set(record.resource, record)
    return () => {
      for (const [index, record] of raised.entries()) {
        const { resource } = record
        if (this.#records.get(resource) !== record) continue
        const seen = before[index]
        if (seen) this.#records.set(resource, seen)
        else this.#records.delete(resource)
      }
    }
  }

  async raise(resource: string, mark: Mark, signal?: AbortSignal): Promise<void> {
    checkResource(resource)
    checkMark(mark)
    await this.raiseAll([{ resource, mark }], signal)
  }

  async raiseAll(presented: readonly Presented[], signal: AbortSignal | undefined): Promise<void> {
    const raised = this.inTurn(resourcesOf(presented), () => {
      signal?.throwIfAborted()
      this.raiseNow(presented)
    })
    await abortable(raised, signal)
  }

  async list(prefix = ''): Promise<readonly MarkRecord[]> {
    checkText(prefix, 'the prefix')
    const listed = [...this.#records.values()].filter(({ resource }) => resource.startsWith(prefix))
    return listed.sort((a, b) => (a.resource < b.resource ? -1 : 1))
  }

  async advance(resource: string): Promise<number | undefined> {
    checkResource(resource)
    return this.inTurn([resource], () => {
      const seen = this.#records.get(resource)
      if (!seen) return undefined
      this.#records.set(resource, { resource, epoch: seen.epoch + 1, token: 0n, raisedAt: Date.now() })
      return seen.epoch + 1
    })
  }

  async prune(olderThan: number, prefix = ''): Promise<number> {
    checkAge(olderThan)
    const old = (await this.list(prefix)).filter(({ raisedAt }) => raisedAt < Date.now() - olderThan)
    for (const { resource } of old) this.#records.delete(resource)
    return old.length
  }
}

function resourcesOf(presented: readonly Presented[]): string[] {
  return presented.map(({ resource }) => resource)
}

import { type Work, type WorkArguments, workOf } from '../core/work.ts'
import { abortable, assertNotEnded, type FenceCallOptions, type Presented, signalOf } from './fence.ts'
import type { Holder, Holders } from './mark.ts'
import { type KeptMarks, keptMarks, type MarkTable } from './marks.ts'

/** The time limit of a commit in milliseconds. Deferred constraints and synchronous replicas can make it slow. */
export const LONGEST_COMMIT = 30_000

/**
 * Commits the transactions of a holder only as long as the fence has seen no newer one. `work` gets a `Transaction`.
 * `check` accepts `Any`.
 */
export interface TransactionFence<Transaction, Any> {
  /**
   * Begins a transaction, checks the token of the lease, or of each lease of a set, runs `work`, and commits.
   * Transactions of one resource run one after the other, except those of permits of different slots and of readers. If it
   * rejects, nothing was written, except after `OUTCOME_UNKNOWN`, or if `work` ended the transaction itself. It rejects
   * with the error of `work`, or with:
   *
   * - `STALE_TOKEN`: a newer holder was seen.
   * - `LEASE_LOST`, `MAX_HOLD`, `CLOSED`: the lease has ended in this process, also just before the commit.
   * - `STORE_UNAVAILABLE`: the mark was locked for too long, or the database cannot be reached.
   * - `INVALID_ARGUMENT`: `work` committed or rolled back, so what it wrote after that was not guarded; or the
   *   connection is in a transaction already.
   * - `OUTCOME_UNKNOWN`: the connection ended during the commit, or the commit was not answered within 30 s.
   */
  transaction<Result>(lease: Holder | Holders, work: Work<Transaction, Result>): Promise<Result>
  transaction<Result>(
    lease: Holder | Holders,
    options: FenceCallOptions | undefined,
    work: Work<Transaction, Result>,
  ): Promise<Result>
  /**
   * Checks the token in a transaction that you began. Call it first. Roll the transaction back if it rejects. It rejects
   * `INVALID_ARGUMENT` outside of a transaction.
   */
  check(lease: Holder | Holders, transaction: Any): Promise<void>
  /**
   * Presents the token without writing: every older holder is refused from now on. Call it before you read what you will
   * change. Rejects as `transaction` does.
   */
  touch(lease: Holder | Holders, options?: FenceCallOptions): Promise<void>
  /** The stored marks. Other fences can keep theirs here. */
  readonly marks: KeptMarks
  /** Creates what the marks need if it is missing. It may be called repeatedly. */
  install(): Promise<void>
}

/** The calls that differ between engines. Each rejects with the error for the caller. */
export interface FenceEngine<Transaction> extends MarkTable {
  /**
   * Begins a transaction, raises these marks in it, runs `work`, and commits. Rolls back if one of them fails. If it
   * rejects before it has called `work`, nothing was written. An error of `work` passes, unless it is a refusal by SQL of
   * the fence.
   */
  transaction<Result>(
    presented: readonly Presented[],
    work: (transaction: Transaction) => Promise<Result>,
  ): Promise<Result>
  /** Raises these marks in a transaction of the caller. */
  check(presented: readonly Presented[], transaction: unknown): Promise<void>
  install(): Promise<unknown>
}

/** The fence of an engine. `present` returns what a holder presents, or throws. */
export function transactionFence<Transaction, Any>(
  engine: FenceEngine<Transaction>,
  present: (lease: Holder | Holders) => readonly Presented[],
): TransactionFence<Transaction, Any> {
  return {
    async transaction<Result>(lease: Holder | Holders, ...args: WorkArguments<FenceCallOptions, Transaction, Result>) {
      const { options, work } = workOf('fence.transaction(lease', args)
      const signal = signalOf(options, 'transaction')
      const presented = present(lease)
      let hasBegun = false
      const guarded = async (transaction: Transaction): Promise<Result> => {
        signal?.throwIfAborted()
        hasBegun = true
        const result = await work(transaction)
        signal?.throwIfAborted()
        assertNotEnded(lease)
        return result
      }
      return abortable(
        () => engine.transaction(presented, guarded),
        signal,
        () => hasBegun,
      )
    },
    check: async (lease, transaction) => engine.check(present(lease), transaction),
    async touch(lease, options) {
      const presented = present(lease)
      const signal = signalOf(options, 'touch')
      await abortable(() => engine.raise(presented, signal), signal)
    },
    marks: keptMarks(engine),
    async install() {
      await engine.install()
    },
  }
}

import { invalid } from '../../contract/check.ts'
import { stateOf } from '../../stores/postgres/failure.ts'

/** What a fence uses of the caller's client. */
export interface Connector {
  /** The rows of one statement. */
  query(text: string): Promise<unknown[][]>
  /**
   * Begins a transaction with this statement, which may take `limit` ms, runs `work` in it, and commits. Rolls back if
   * either fails.
   */
  transaction(first: string, work: (transaction: unknown) => Promise<void>, limit: number): Promise<void>
}

/** Follows the first statement. Without the savepoint at the end, the work has ended the transaction itself. */
export const BEGUN = '; savepoint holdfast'
export const RELEASE = 'release savepoint holdfast'

/** Milliseconds. Deferred constraints and synchronous replicas can make a commit slow. */
export const LONGEST_COMMIT = 30_000

/** The error of the last message, in which the savepoint is released. Others pass unchanged. */
export function endedEarly(error: unknown): unknown {
  const state = stateOf(error)
  if (state === '25P02')
    return invalid('PostgreSQL rolled back: a statement failed and the work ignored it, so rethrow such errors')
  if (state === '25P01' || state === '3B001')
    return invalid(
      'the transaction was committed or rolled back before its work ended: what the work wrote after that was not ' +
        'guarded, so remove begin, commit and rollback from the work',
    )
  return error
}

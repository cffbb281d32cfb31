import { invalid } from '../../contract/check.ts'
import { stateOf } from '../../stores/postgres/failure.ts'

/** The part of the caller's client that a fence uses. */
export interface Connector {
  /** Runs one statement and resolves to its rows. */
  query(text: string): Promise<unknown[][]>
  /**
   * Begins a transaction with this statement, which may take `limit` ms, runs `work` in it, and commits. Rolls back if
   * either fails.
   */
  transaction(first: string, work: (transaction: unknown) => Promise<void>, limit: number): Promise<void>
}

/** The SQLSTATE of a savepoint outside of a transaction. */
const NO_TRANSACTION = '25P01'

/** A savepoint after the first statement. If it is missing at the end, the work has ended the transaction itself. */
export const BEGUN = '; savepoint holdfast'
export const RELEASE = 'release savepoint holdfast'

/**
 * Statements that fail unless they are in a transaction. They come before a check, so that without one nothing is raised:
 * its locks would end with it, and what is written after that would not be guarded.
 */
export const INSIDE = 'savepoint holdfast_check; release savepoint holdfast_check; '

/** Converts the error of a check. Other errors pass unchanged. */
export function outside(error: unknown): unknown {
  if (stateOf(error) !== NO_TRANSACTION) return error
  return invalid('this connection is in no transaction, so the fence guards nothing: begin one first')
}

/** Converts the error of the last message, which releases the savepoint. Other errors pass unchanged. */
export function endedEarly(error: unknown): unknown {
  const state = stateOf(error)
  if (state === '25P02')
    return invalid('PostgreSQL rolled back: a statement failed and the work ignored it, so rethrow such errors')
  if (state === NO_TRANSACTION || state === '3B001')
    return invalid(
      'the transaction was committed or rolled back before its work ended: what the work wrote after that was not ' +
        'guarded, so remove begin, commit and rollback from the work',
    )
  return error
}

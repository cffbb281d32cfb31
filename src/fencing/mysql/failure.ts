import { LeaseError } from '../../contract/errors.ts'
import { numberOf, failure as storeFailure } from '../../stores/mysql/failure.ts'
import { CONFLICT, missing, otherColumns, type Refusal, refused } from '../refusals.ts'

/** Converts the error of a fence's statement for the caller. `sent`: it may have been carried out. */
export function failure(error: unknown, table: string, sent: boolean): LeaseError {
  const means = LeaseError.is(error) ? undefined : meaningOf(numberOf(error), table)
  const unmapped = storeFailure(error, sent)
  return means ? refused(means, error, unmapped.cause) : unmapped
}

function meaningOf(number: number, table: string): Refusal | undefined {
  switch (number) {
    case 1146:
      return missing(table)
    case 1054:
      return otherColumns(table)
    case 1020: // MariaDB with innodb_snapshot_isolation
    case 1213:
      return CONFLICT
    case 1142:
      return ['ACCESS_DENIED', `this user needs select, insert and update on ${table}, and delete to prune marks`]
    case 1205:
      return [
        'STORE_UNAVAILABLE',
        'the mark is locked by a transaction of another holder, or by a backup: if that hangs, end its session',
      ]
    default:
      return undefined
  }
}

/**
 * Did two transactions wait for each other, or was a row changed after the snapshot of this one? The test is by code,
 * because a cause has no number.
 */
export function isConflict(error: unknown): boolean {
  const { cause } = error as { cause?: { code?: unknown } }
  return cause?.code === 'ER_LOCK_DEADLOCK' || cause?.code === 'ER_CHECKREAD'
}

import { LeaseError } from '../../contract/errors.ts'
import { stateOf, failure as storeFailure } from '../../stores/postgres/failure.ts'
import { type Mark, staleToken } from '../mark.ts'
import { CONFLICT, missing, otherColumns, type Refusal, refused } from '../refusals.ts'
import { OVER, STALE } from './sql.ts'

/** The JSON in the detail of the error. */
interface Detail {
  readonly resource: string
  readonly epoch: number
  readonly token: string
  readonly highest: { readonly epoch: number; readonly token: string }
}

/** The refusal by our function or trigger, whichever statement caused it. `undefined` for any other error. */
export function refusalOf(error: unknown): LeaseError | undefined {
  const state = stateOf(error)
  if (state !== STALE && state !== OVER) return undefined
  const detail = detailOf(error)
  if (!detail) return undefined
  const { resource, mark, seen } = detail
  if (state === STALE || seen.token > mark.token) return staleToken(resource, mark, seen)
  return new LeaseError(
    'LEASE_LOST',
    `the lease ${JSON.stringify(resource)} expired or was released, or is not in this database: stop`,
    { leaseName: resource },
  )
}

/** The detail of our refusal. `undefined`: a function of the caller has raised the same SQLSTATE. */
function detailOf(error: unknown): { resource: string; mark: Mark; seen: Mark } | undefined {
  try {
    const { resource, highest, ...shown } = JSON.parse(String((error as { detail?: unknown }).detail)) as Detail
    const markOf = ({ epoch, token }: Omit<Detail, 'resource' | 'highest'>): Mark => ({
      epoch,
      token: BigInt(token),
    })
    return { resource, mark: markOf(shown), seen: markOf(highest) }
  } catch {
    return undefined
  }
}

/** Did PostgreSQL end the transaction because it and another waited for each other? */
export function isDeadlock(error: unknown): boolean {
  return stateOf(error) === '40P01'
}

/** Was a row changed after the snapshot of a transaction above `read committed`? */
export function isOldSnapshot(error: unknown): boolean {
  return stateOf(error) === '40001'
}

/** Converts the error of a fence's statement for the caller. `sent`: it may have been carried out. */
export function failure(error: unknown, marks: string, sent: boolean): LeaseError {
  const means = meaningOf(stateOf(error), marks)
  const unmapped = storeFailure(error, sent)
  return refusalOf(error) ?? (means ? refused(means, error, unmapped.cause) : unmapped)
}

function meaningOf(state: string | undefined, marks: string): Refusal | undefined {
  switch (state) {
    case '42P01':
    case '42883':
    case '3F000':
      return missing(`${marks} or its function`)
    case '42703':
      return otherColumns(marks)
    case '40P01':
    case '40001':
      return CONFLICT
    case '42501':
      return [
        'ACCESS_DENIED',
        `this PostgreSQL user may not do this with marks: grant usage on their schema, and select, insert and update on ${marks}, and delete to prune them`,
      ]
    case '55P03':
      return [
        'STORE_UNAVAILABLE',
        'a transaction of another holder has locked the mark: if it hangs, end its session, or set the option maxIdle of the fence',
      ]
    default:
      return undefined
  }
}

/** Is the outcome of a commit that failed with this error unknown? */
export function isUnknown(error: unknown): boolean {
  const state = stateOf(error)
  return state === undefined || /^(08|57P)/.test(state)
}

import { LeaseError } from '../../contract/errors.ts'
import { stateOf, failure as storeFailure } from '../../stores/postgres/failure.ts'
import { type Mark, staleToken } from '../mark.ts'
import { OVER, STALE } from './sql.ts'

interface Told {
  readonly resource: string
  readonly lineage: number
  readonly token: string
  readonly highest: { readonly lineage: number; readonly token: string }
}

/** What a function or a trigger of ours refused, from whichever statement; `undefined` for any other error. */
export function refusalOf(error: unknown): LeaseError | undefined {
  const state = stateOf(error)
  if (state !== STALE && state !== OVER) return undefined
  const { resource, highest, ...shown } = JSON.parse(String((error as { detail?: unknown }).detail)) as Told
  const [mark, seen]: Mark[] = [shown, highest].map(({ lineage, token }) => ({ lineage, token: BigInt(token) }))
  if (!mark || !seen) return undefined
  if (state === STALE || seen.token > mark.token) return staleToken(resource, mark, seen)
  return new LeaseError('LEASE_LOST', `the lease ${JSON.stringify(resource)} is over: it ran out or was released`, {
    lease: resource,
  })
}

/** What the statement of a fence failed with; `sent`: may it have been carried out? */
export function failure(error: unknown, marks: string, sent: boolean): LeaseError {
  const refusal = refusalOf(error)
  if (refusal) return refusal
  const state = stateOf(error)
  const says = (code: 'INVALID_ARGUMENT' | 'STORE_UNAVAILABLE', text: string): LeaseError =>
    new LeaseError(code, `${text} (${(error as Error).message})`, { cause: storeFailure(error, sent).cause })
  if (state === '42P01' || state === '42883' || state === '3F000' || state === '42703')
    return says(
      'INVALID_ARGUMENT',
      `the table ${marks} or a function of it is missing: carry out what holdfast fence sql prints, or fence.install()`,
    )
  if (state === '42501')
    return says(
      'INVALID_ARGUMENT',
      `this PostgreSQL user may not raise marks: grant usage on its schema and select, insert, update on ${marks}`,
    )
  if (state === '55P03')
    return says(
      'STORE_UNAVAILABLE',
      'a transaction of another holder has the mark locked: if it hangs, end its session, or set the option idle of the fence',
    )
  return storeFailure(error, sent)
}

/** Of a commit: does nobody know what became of it? */
export function isUnknown(error: unknown): boolean {
  const state = stateOf(error)
  return state === undefined || /^(08|57P)/.test(state)
}

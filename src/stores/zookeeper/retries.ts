import { LeaseError } from '../../contract/errors.ts'

/** How often a request starts again because others changed the queue meanwhile. */
export const MAX_ATTEMPTS = 10

export function tooManyChanges(name: string): LeaseError {
  return new LeaseError(
    'STORE_UNAVAILABLE',
    `the queue of ${JSON.stringify(name)} changed during each of ${MAX_ATTEMPTS} attempts: retry`,
  )
}

import { LeaseError } from '../../contract/errors.ts'

/** So often a request begins anew because others changed the line in between. */
export const MOST_TRIES = 10

export function restless(name: string): LeaseError {
  return new LeaseError(
    'STORE_UNAVAILABLE',
    `the line of ${JSON.stringify(name)} changed ${MOST_TRIES} times meanwhile`,
  )
}

import { LeaseError } from '../../contract/errors.ts'
import type { Names } from './names.ts'
import { LAST_TOKEN } from './sql.ts'

/**
 * Frees a name whose token cannot rise, which the function for `break` does not. Its values are the name, who breaks it,
 * and the deadline. A statement and not a function, so it needs no migration.
 */
export function freeExhausted({ lease }: Names): string {
  return `with freed as (
  update ${lease} set id = null, ttl = 0, expires_at = clock_timestamp(), broken_by = $2
  where name = $1 and token >= ${LAST_TOKEN} and id is not null and expires_at > clock_timestamp()
    and extract(epoch from clock_timestamp()) * 1000 <= $3::double precision
  returning 1
)
select count(*), $0, (
  select set_config('synchronous_commit', 'on', true) where current_setting('synchronous_commit') = 'off'
) from freed`
}

/** The error for a name that can no longer be granted. `also`: what was done nevertheless. */
export function exhausted(also = ''): LeaseError {
  const message =
    `the name has used up its tokens: another program set its counter to ${LAST_TOKEN}${also}. End the holder, ` +
    'delete the row of the name, and begin the next epoch of fences that saw that token (docs/stores/postgres.md)'
  return new LeaseError('STORE_UNAVAILABLE', message, { retryable: false })
}

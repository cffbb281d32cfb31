import { LeaseError } from '../../contract/errors.ts'
import type { Names } from './names.ts'
import { LAST_TOKEN } from './sql.ts'

/**
 * Frees a name whose token cannot rise any more, which the function for `break` does not. Its parameters are the name and
 * the deadline. It is a statement and not a function, so it needs no migration.
 */
export function freeExhausted({ lease, shared }: Names): string {
  return `with used_up as (
  select name from ${lease}
  where name = $1 and token >= ${LAST_TOKEN} and extract(epoch from clock_timestamp()) * 1000 <= $2::double precision
    and (id is not null and expires_at > clock_timestamp() or shared)
  for update
), ended as (
  delete from ${shared} s using used_up u where s.name = u.name
), freed as (
  update ${lease} l set id = null, ttl = 0, expires_at = clock_timestamp() from used_up u where l.name = u.name
  returning 1
)
select count(*), $0, (
  select set_config('synchronous_commit', 'on', true) where current_setting('synchronous_commit') = 'off'
) from freed`
}

/** The error for a name that can no longer be granted. `also`: what was done all the same. */
export function exhausted(also = ''): LeaseError {
  const message =
    `the name has used up its tokens: another program set its counter to ${LAST_TOKEN}${also}. End the holder, ` +
    'delete the row of the name, and begin the next epoch of fences that saw that token (docs/stores/postgres.md)'
  return new LeaseError('STORE_UNAVAILABLE', message, { retryable: false })
}
